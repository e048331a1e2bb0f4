//go:build gates

package concurrency_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/gate"
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
	config, err := pgxpool.ParseConfig(w.url)
	require.NoError(w.t, err)
	config.ConnConfig.RuntimeParams["search_path"] = "late, pg_catalog, public"
	pool, err := pgxpool.NewWithConfig(w.ctx, config)
	require.NoError(w.t, err)
	w.t.Cleanup(pool.Close)
	return reservation.NewService(postgres.NewReservations(pool), reservation.TokenKeys{})
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

// The sweep has picked and moved a hold and not yet committed: a change of it waits, and then finds it expired.
//
// Requirements: R60, R13.
func TestSweepFirst(t *testing.T) {
	t.Parallel()
	for name := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			r := w.held("a").Reservation
			late := w.lateSweeper(r.ExpiresAt)
			ctx, arrived, release := w.pauseAt(gate.SweepAfterPick)
			sweeping := beginSweep(ctx, late)
			w.wait(arrived)
			changing := w.beginEnding(w.ctx, name, r.ID)
			w.someoneWaits()
			release()

			require.Equal(t, reservation.Swept{Expired: 1}, receive(w, sweeping))
			got := receive(w, changing)
			if name == "cancel" { // the caller wanted it gone, and it is
				require.NoError(t, got.err)
				require.Equal(t, reservation.StateExpired, got.r.State)
			} else {
				require.ErrorIs(t, got.err, reservation.ErrExpired)
			}
			w.endedOnce(r.ID, "expired", "sweep")
			require.Zero(t, one[int](w, `SELECT count(*) FROM bindings`))
			w.sound("I4 decided in time")
		})
	}
}

// A change holds the locks while the deadline passes: the sweep passes over it at once, and the change wins.
//
// Requirements: R60, R45.
func TestChangeFirst(t *testing.T) {
	t.Parallel()
	for name, ending := range endings {
		places := []gate.Place{gate.ChangeAfterLock}
		if name == "convert" {
			places = append(places, gate.ConvertAfterBinding, gate.ConvertBeforeCommit)
		}
		for _, place := range places {
			t.Run(name+" at "+string(place), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.servers(1)
				r := w.held("a").Reservation
				late := w.lateSweeper(r.ExpiresAt)
				ctx, arrived, release := w.pauseAt(place)
				changing := w.beginEnding(ctx, name, r.ID)
				w.wait(arrived)
				require.Zero(t, swept(w, w.ctx, late), "the row is locked")
				release()

				got := receive(w, changing)
				require.NoError(t, got.err)
				require.Equal(t, ending.state, got.r.State)
				require.Zero(t, swept(w, w.ctx, late))
				require.Equal(t, string(ending.state), w.state(r.ID))
				w.sound()
			})
		}
	}
}

// The deadline passes while a cancellation holds the locks: it answers expired, and nobody's name stands on it.
//
// Requirements: R13, R52
func TestDeadlinePassesBehindTheLocksOfACancellation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	r := w.held("a").Reservation
	w.deadlineIn(time.Second)
	var now *reservation.Reservation
	err := w.whileStoppedAt(gate.ChangeAfterLock, func(ctx context.Context) (err error) {
		now, err = endings["cancel"].do(ctx, w, r.ID)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, reservation.StateExpired, now.State)
	w.endedOnce(r.ID, "expired", "allocator")
	w.sound()
}

// The sweep has taken its snapshot, in which the hold is due, and not yet picked its rows; the change is made and
// committed in between. What it made stands: a renewed hold is never expired, a converted or cancelled one left alone.
//
// Requirements: R60.
func TestChangeBetweenTheSweepsSnapshotAndItsPick(t *testing.T) {
	t.Parallel()
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			r := w.held("a").Reservation
			late := w.lateSweeper(r.ExpiresAt)
			clock := w.session().do(`SELECT pg_advisory_lock($1)`, clockLock)
			sweeping := beginSweep(w.ctx, late)
			w.someoneWaitsFor(clock.pid())
			changed, err := ending.do(w.ctx, w, r.ID)
			require.NoError(t, err)
			clock.do(`SELECT pg_advisory_unlock($1)`, clockLock)

			require.Equal(t, reservation.Swept{}, receive(w, sweeping))
			now, err := w.reservations.Reservation(w.ctx, w.caller, r.ID)
			require.NoError(t, err)
			require.Equal(t, ending.state, now.State)
			require.Equal(t, changed.ExpiresAt, now.ExpiresAt)
			w.sound()
		})
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

// Fired together around the deadline, a conversion and sweeps: in every round exactly one wins, and a binding stands if
// and only if the hold did not expire.
//
// Requirements: R60, R48. Faults: F-R4.
func TestConvertAndSweepAtTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	won := map[string]int{}
	for round := range int(number(t, roundsEnv, 40)) {
		server := w.server(64 * 1024)
		r := w.held(fmt.Sprint(round)).Reservation
		w.deadlineIn(time.Duration(round%8) * 3 * time.Millisecond)
		var err error
		together(3, func(i int) {
			if i == 0 {
				_, err = w.reservations.Convert(w.ctx, w.caller, r.ID, "", fmt.Sprint("service-", round))
				return
			}
			w.sweepUntilEnded(r.ID)
		})
		state := w.state(r.ID)
		won[state]++
		if err != nil {
			require.ErrorIs(t, err, reservation.ErrExpired)
		}
		require.Equal(t, err == nil, state == "converted")
		require.Equal(t, err == nil, one[int](w, `SELECT count(*) FROM bindings WHERE server_id = $1`, server) == 1)
		w.exec(`UPDATE servers SET state = 'maintenance' WHERE id = $1`, server) // the next round's is another one
	}
	t.Logf("tried: %v", won)
	w.sound()
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

// Ten cancel at once while a sweeper expires the hold: one end, one event, ten equal answers, one server back.
//
// Requirements: R12, R13, R60. Cases: HO-08. Faults: F-R6.
func TestCancelTenTimesAtTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	ended := map[reservation.State]int{}
	for round := range 20 {
		require.Equal(t, 1, one[int](w, free), "round %d", round)
		r := w.held(fmt.Sprint(round)).Reservation
		require.Zero(t, one[int](w, free))
		w.deadlineIn(time.Duration(round%5) * 4 * time.Millisecond)
		states := make([]reservation.State, 10)
		together(11, func(i int) {
			if i == 10 {
				w.sweepUntilEnded(r.ID)
				return
			}
			now, err := endings["cancel"].do(w.ctx, w, r.ID)
			if err != nil {
				t.Errorf("cancellation %d: %v", i, err)
				return
			}
			states[i] = now.State
		})
		for _, state := range states {
			require.Equal(t, w.state(r.ID), string(state))
		}
		ended[states[0]]++
	}
	require.Equal(t, 1, one[int](w, free))
	t.Logf("ended: %v", ended)
	w.sound()
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

// One sweep takes everything that is due, in batches; what is not due stays, and each move is told once.
//
// Requirements: R60, R59.
func TestOneSweepTakesAllBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(64 * 1024)
	alive := w.held("alive").Reservation
	w.dueHolds(1200)
	set := &gate.Set{}
	set.Arm(gate.SweepAfterPick, func(context.Context) error { return nil })
	require.Equal(t, 1200, swept(w, gate.With(w.ctx, set), w.reservations))
	require.Equal(t, 3, set.Reached(gate.SweepAfterPick), "500, 500 and 200")
	require.Equal(t, 1200, one[int](w, `SELECT count(DISTINCT reservation_id) FROM events WHERE type = 'reservation.expired' AND actor_kind = 'sweep'`))
	require.Equal(t, 1200, one[int](w, `SELECT count(*) FROM events WHERE type = 'reservation.expired'`))
	require.Equal(t, "held", w.state(alive.ID))
	require.Equal(t, 1200, one[int](w, free))
	require.Zero(t, swept(w, w.ctx, w.reservations))
	w.sound(rawRows...)
}

// A row that cannot be moved does not stop the others, neither those of its batch nor those behind it, and the error
// names it.
//
// Requirements: R60. Faults: F-J4.
func TestPoisonRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dueHolds(120)
	poisoned := one[uuid.UUID](w, `SELECT id FROM reservations WHERE order_id = '7'`)
	w.exec(`CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'poisoned on purpose' USING ERRCODE = 'data_exception'; END $$`)
	w.exec(fmt.Sprintf(`CREATE TRIGGER poison BEFORE UPDATE ON reservations FOR EACH ROW WHEN (OLD.id = '%s') EXECUTE FUNCTION poison()`, poisoned))

	result, err := w.reservations.Sweep(w.ctx, 50)
	require.Equal(t, reservation.Swept{Expired: 119, Failed: 1}, result)
	require.ErrorContains(t, err, "poisoned on purpose")
	require.ErrorContains(t, err, fmt.Sprintf("%x", poisoned[:]))
	require.Equal(t, []uuid.UUID{poisoned}, one[[]uuid.UUID](w, `SELECT array_agg(id) FROM reservations WHERE state = 'held'`))
	require.Equal(t, 119, one[int](w, `SELECT count(DISTINCT reservation_id) FROM events WHERE type = 'reservation.expired'`))

	result, err = w.reservations.Sweep(w.ctx, 50)
	require.Equal(t, reservation.Swept{Failed: 1}, result)
	require.Error(t, err)
	w.exec(`DROP TRIGGER poison ON reservations`)
	require.Equal(t, 1, swept(w, w.ctx, w.reservations))
	w.sound(rawRows...)
}

// The sweep passes over a row that somebody has locked, in a batch and one by one, and never waits for it; a locked
// server does not concern it.
//
// Requirements: R60.
func TestSweepPassesOverLockedRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dueHolds(20)
	locked := w.session().do(`BEGIN`).do(`SELECT FROM reservations WHERE order_id IN ('3', '4') FOR UPDATE`)
	w.session().do(`BEGIN`).do(`SELECT FROM servers FOR UPDATE`)
	done := beginSweep(w.ctx, w.reservations)
	require.Equal(t, reservation.Swept{Expired: 18}, receive(w, done))
	due, err := postgres.NewReservations(w.pool).DueAfter(w.ctx, reservation.Due{}, 10)
	require.NoError(t, err)
	require.Len(t, due, 2)
	moved, err := postgres.NewReservations(w.pool).ExpireOne(w.ctx, due[0])
	require.NoError(t, err)
	require.False(t, moved)
	locked.do(`COMMIT`)
	require.Equal(t, 2, swept(w, w.ctx, w.reservations))
}

// A sweep that moves its rows one by one looks at each again when it moves it: one that was renewed, cancelled or sold
// since it was found due stays as it is.
//
// Requirements: R13, R60.
func TestSweepOfOneLooksAgain(t *testing.T) {
	t.Parallel()
	meanwhile := map[string]string{
		"renewed":   `UPDATE reservations SET expires_at = clock_timestamp() + interval '10 minutes'`,
		"cancelled": `UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'person', end_reason = 'other'`,
	}
	for name, sql := range meanwhile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			r := w.held("a").Reservation
			w.expire(r.ID)
			store := postgres.NewReservations(w.pool)
			due, err := store.DueAfter(w.ctx, reservation.Due{}, 10)
			require.NoError(t, err)
			require.Len(t, due, 1)
			w.exec(sql)
			before := w.state(r.ID)
			moved, err := store.ExpireOne(w.ctx, due[0])
			require.NoError(t, err)
			require.False(t, moved)
			require.Equal(t, before, w.state(r.ID))
		})
	}
}

// With the release switch off nothing new is sold, and what is dead still becomes expired and gives its server back.
//
// Requirements: R57, R56. Faults: F-D5.
func TestSweepHasNoSwitch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	r := w.held("a").Reservation
	w.expire(r.ID)
	w.release.turnOff()
	require.Equal(t, allocation.OutcomeFeatureDisabled, w.reserve(w.ctx, request("b")).Code)
	require.Equal(t, 1, swept(w, w.ctx, w.reservations))
	w.endedOnce(r.ID, "expired", "sweep")
	require.Equal(t, 1, one[int](w, free))
	w.sound()
}

// Every server is held by an order that was abandoned: after one sweep all of them can be sold again.
//
// Requirements: R59.
func TestStormOfAbandonedOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 80
	w.servers(n)
	together(8, func(i int) {
		for j := range n / 8 {
			if _, err := w.allocator.Reserve(w.ctx, w.caller, request(fmt.Sprint(i, "-", j))); err != nil {
				t.Errorf("reserve: %v", err)
			}
		}
	})
	for i := 0; one[int](w, free) > 0; i++ { // those that were told to try again
		w.reserve(w.ctx, request(fmt.Sprint("again-", i)))
	}
	require.Equal(t, allocation.OutcomeNoCapacity, w.reserve(w.ctx, request("late")).Code)
	w.deadlineIn(-time.Second)
	require.Equal(t, n, swept(w, w.ctx, w.reservations))
	require.Equal(t, n, one[int](w, free))
	for i := range n {
		w.held(fmt.Sprint("new-", i))
	}
	w.sound()
}

// With no sweeper at all, no sale is lost: the allocator itself moves the dead hold aside under the server's lock.
//
// Requirements: R61, R56. Faults: F-J5.
func TestDeadHoldIsSoldWithoutASweeper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.servers(1)
	dead := w.held("a").Reservation
	w.exec(`UPDATE reservations SET expires_at = clock_timestamp() - interval '1 hour'`)

	finish := w.paused(gate.ReserveAfterInsert, request("b"))
	locked := w.session()
	_, err := locked.conn.Exec(w.ctx, `SELECT FROM servers WHERE id = $1 FOR UPDATE NOWAIT`, servers[0])
	require.ErrorContains(t, err, "could not obtain lock", "the dead hold is moved under the server's lock")
	require.Equal(t, "held", w.state(dead.ID), "nothing of it is seen before the commit")
	sold := finish()
	require.NoError(t, sold.err)
	require.Equal(t, allocation.OutcomeReserved, sold.outcome.Code)
	require.Equal(t, dead.Server.ID, sold.outcome.Reservation.Server.ID)
	w.endedOnce(dead.ID, "expired", "allocator")
	w.sound()
}

// A dead hold whose row somebody has locked is a skip: nothing went wrong, nobody waits, and a moment later it is sold.
//
// Requirements: R61, R22.
func TestLockedDeadHoldIsASkip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	dead := w.held("a").Reservation
	w.expire(dead.ID)
	locked := w.session().do(`BEGIN`).do(`SELECT FROM reservations WHERE id = $1 FOR UPDATE`, rawID(string(dead.ID)))
	got := w.receive(w.begin(w.ctx, request("b")))
	require.NoError(t, got.err)
	d := w.refused(got.outcome, allocation.OutcomeContended, allocation.CauseServersTaken)
	require.Equal(t, 1, d.Skipped)
	require.Zero(t, d.Attempts)
	require.Equal(t, "held", w.state(dead.ID))
	locked.do(`COMMIT`)
	w.held("c")
	w.endedOnce(dead.ID, "expired", "allocator")
	w.sound()
}

// Whether somebody cancelled it or it just sat there stands on the row: a sweep writes only expired, a person only
// cancelled, and a cancellation that comes after the deadline answers expired, in nobody's name.
//
// Requirements: R13, R12, R14.
func TestWhoEndsAReservationHow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(3)
	swept, cancelled, late := w.held("a").Reservation, w.held("b").Reservation, w.held("c").Reservation
	now, err := endings["cancel"].do(w.ctx, w, cancelled.ID)
	require.NoError(t, err)
	require.Equal(t, reservation.StateCancelled, now.State)
	w.endedOnce(cancelled.ID, "cancelled", "person")
	require.Equal(t, "tester", now.EndedBy.ID)

	w.expire(late.ID)
	now, err = endings["cancel"].do(w.ctx, w, late.ID)
	require.NoError(t, err)
	require.Equal(t, reservation.StateExpired, now.State)
	require.Empty(t, now.EndReason)
	w.endedOnce(late.ID, "expired", "allocator")

	_, err = w.pool.Exec(w.ctx, `UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'sweep' WHERE id = $1`, rawID(string(swept.ID)))
	require.ErrorContains(t, err, "reservations_sweep_only_expires")
	w.expire(swept.ID)
	_, err = w.reservations.Sweep(w.ctx, batch)
	require.NoError(t, err)
	w.endedOnce(swept.ID, "expired", "sweep")
	for _, r := range []*reservation.Reservation{swept, cancelled, late} {
		require.True(t, one[bool](w, `SELECT ended_at IS NOT NULL FROM reservations WHERE id = $1`, rawID(string(r.ID))))
		again, err := endings["cancel"].do(w.ctx, w, r.ID)
		require.NoError(t, err)
		require.Equal(t, w.state(r.ID), string(again.State))
	}
	w.sound()
}

// Two sweeps at once move each reservation once.
//
// Requirements: R60. Faults: F-J3.
func TestSweepsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dueHolds(300)
	var mu sync.Mutex
	total := 0
	together(4, func(int) {
		result, err := w.reservations.Sweep(w.ctx, 20)
		if err != nil {
			t.Errorf("sweep: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		total += result.Expired
	})
	total += swept(w, w.ctx, w.reservations) // what was locked by another when one looked last
	require.Equal(t, 300, total)
	require.Equal(t, 300, one[int](w, `SELECT count(*) FROM events WHERE type = 'reservation.expired'`))
	w.sound(rawRows...)
}
