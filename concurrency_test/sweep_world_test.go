//go:build gates

package concurrency_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres"
)

// batch is the sweep's batch in tests that do not look at it.
const batch = 500

// swept runs a sweep that must succeed and returns how many reservations it moved.
func swept(w *world, ctx context.Context, s *reservation.Service) int { //nolint:revive // the world comes first, as in a method
	w.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := s.Sweep(ctx, batch)
	require.NoError(w.t, err)
	require.Zero(w.t, result.Failed)
	return result.Expired
}

// clockLock is what a late sweeper's clock waits for; a test that holds it stops the clock's readers.
const clockLock = 7_001

// lateSweeper sweeps by a clock that stands still at the given time. Its clock can be stopped between a statement's
// snapshot and the pick of its rows: it is read in that statement, and waits for clockLock.
func (w *world) lateSweeper(at time.Time) *reservation.Service {
	w.t.Helper()
	w.exec(`CREATE SCHEMA late`)
	w.exec(fmt.Sprintf(`CREATE FUNCTION late.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
		BEGIN PERFORM pg_advisory_xact_lock_shared(%d); RETURN %s; END $$`, clockLock, quoted(at)))
	return reservation.NewService(postgres.NewReservations(w.searching("late")), reservation.TokenKeys{})
}

func quoted(at time.Time) string { return "timestamptz '" + at.UTC().Format(time.RFC3339Nano) + "'" }

// someoneWaits returns once a session of this database waits for a lock.
func (w *world) someoneWaits() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return one[bool](w, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	}, patience, 5*time.Millisecond, "nobody came to wait for a lock")
}

// endings are the changes that race with a sweep, each with the state in which it leaves the hold when it wins.
var endings = map[string]struct {
	do    func(ctx context.Context, w *world, id reservation.ID) (*reservation.Reservation, error)
	state reservation.State
}{
	"convert": {func(ctx context.Context, w *world, id reservation.ID) (*reservation.Reservation, error) {
		c, err := w.reservations.Convert(ctx, w.caller, id, "", "service")
		if err != nil {
			return nil, err
		}
		return c.Reservation, nil
	}, reservation.StateConverted},
	"renew": {func(ctx context.Context, w *world, id reservation.ID) (*reservation.Reservation, error) {
		return w.reservations.Renew(ctx, w.caller, id, "")
	}, reservation.StateHeld},
	"cancel": {func(ctx context.Context, w *world, id reservation.ID) (*reservation.Reservation, error) {
		return w.reservations.Cancel(ctx, w.caller, id, "", reservation.Cancellation{Reason: reservation.CancelOther})
	}, reservation.StateCancelled},
}

// change is what a change that runs beside the test came to.
type change struct {
	r   *reservation.Reservation
	err error
}

// beginEnding starts a change beside the test.
func (w *world) beginEnding(ctx context.Context, name string, id reservation.ID) <-chan change {
	done := make(chan change, 1)
	go func() {
		r, err := endings[name].do(ctx, w, id)
		done <- change{r, err}
	}()
	return done
}

// beginSweep starts a sweep beside the test.
func beginSweep(ctx context.Context, s *reservation.Service) <-chan reservation.Swept {
	done := make(chan reservation.Swept, 1)
	go func() {
		result, err := s.Sweep(ctx, batch)
		if err != nil {
			result.Failed = -1
		}
		done <- result
	}()
	return done
}

// receive waits for what runs beside the test.
func receive[T any](w *world, done <-chan T) T {
	w.t.Helper()
	select {
	case result := <-done:
		return result
	case <-time.After(patience):
		require.FailNow(w.t, "no answer: somebody waits for somebody")
		panic("unreachable")
	}
}

// endedOnce asserts how a reservation ended, by whom, and that its end was told once.
func (w *world) endedOnce(id reservation.ID, state, by string) {
	w.t.Helper()
	require.Equal(w.t, state+" by "+by, one[string](w, `SELECT state || ' by ' || ended_by_kind FROM reservations WHERE id = $1`, rawID(string(id))))
	require.Equal(w.t, []string{"reservation." + state}, one[[]string](w, `SELECT array_agg(type) FROM events WHERE reservation_id = $1
		AND type IN ('reservation.expired', 'reservation.cancelled', 'reservation.converted')`, rawID(string(id))))
}

// deadlineIn moves every deadline to that long from now.
func (w *world) deadlineIn(d time.Duration) {
	w.t.Helper()
	w.exec(`UPDATE reservations SET expires_at = clock_timestamp() + make_interval(secs => $1) WHERE state = 'held'`, d.Seconds())
}

// sweepUntilEnded sweeps until the reservation is no longer held, whoever ended it.
func (w *world) sweepUntilEnded(id reservation.ID) {
	for {
		if _, err := w.reservations.Sweep(w.ctx, batch); err != nil {
			w.t.Errorf("sweep: %v", err)
			return
		}
		var state string
		if err := w.pool.QueryRow(w.ctx, `SELECT state FROM reservations WHERE id = $1`, rawID(string(id))).Scan(&state); err != nil {
			w.t.Errorf("read: %v", err)
			return
		}
		if state != "held" {
			return
		}
	}
}

// dueHolds inserts n servers, each with a hold that ended a minute ago.
func (w *world) dueHolds(n int) {
	w.t.Helper()
	w.exec(`INSERT INTO servers (organization_id, id, source, external_id, site, state)
		SELECT $1, gen_random_uuid(), 'due', g::text, 'FSN1', 'ready' FROM generate_series(1, $2) g`, org, n)
	w.exec(`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, created_at, expires_at,
			max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		SELECT $1, gen_random_uuid(), id, external_id, '1', 'person', clock_timestamp() - interval '16 minutes',
			clock_timestamp() - interval '1 minute', clock_timestamp() + interval '44 minutes', external_id, '', 'test', '{}', '{}',
			'{"v": 1, "site": "FSN1"}', id
		FROM servers WHERE source = 'due'`, org)
}

// rawRows are the invariants that rows inserted by dueHolds do not meet: nobody decided on them.
var rawRows = []string{"I12 one event per transition", "every reservation's decision"}
