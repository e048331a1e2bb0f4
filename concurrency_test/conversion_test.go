//go:build gates

package concurrency_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// free is what every other order sees of the servers, in one statement.
const free = `SELECT count(*) FROM servers s WHERE NOT EXISTS (
	SELECT FROM reservations r WHERE r.server_id = s.id AND r.state = 'held'
	UNION ALL SELECT FROM bindings b WHERE b.server_id = s.id AND b.ended_at IS NULL)`

// A conversion writes the binding first and the state second, and at every place on the way others see the server
// taken; a greedy buyer at each place gets nothing.
//
// Requirements: R47, R48, R49.
func TestPromoteNeverReleaseAndRewrite(t *testing.T) {
	t.Parallel()
	for _, place := range []gate.Place{gate.ChangeAfterServer, gate.ChangeAfterLock, gate.ConvertAfterBinding, gate.ConvertBeforeCommit} {
		t.Run(string(place), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			r := w.held("a").Reservation
			ctx, arrived, release := w.pauseAt(place)
			done := make(chan error, 1)
			go func() {
				_, err := w.reservations.Convert(ctx, w.caller, r.ID, "", "service")
				done <- err
			}()
			w.wait(arrived)
			require.Zero(t, one[int](w, free))
			require.True(t, w.reserve(w.ctx, request("greedy")).Refused())
			release()
			require.NoError(t, <-done)
			require.Zero(t, one[int](w, free))
			require.Equal(t, "converted", w.state(r.ID))
			d := w.refused(w.reserve(w.ctx, request("late")), allocation.OutcomeNoCapacity, allocation.CauseAllSold)
			require.Equal(t, 1, d.Servers)
			w.sound()
		})
	}
}

// A sampler polls while many conversions run; it never sees one of their servers free.
//
// Requirements: R48.
func TestSamplerNeverSeesConvertedServerFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 60
	w.servers(n)
	ids := make([]reservation.ID, n)
	for i := range ids {
		ids[i] = w.held(fmt.Sprint(i)).Reservation.ID
	}
	ctx, stop := context.WithCancel(w.ctx)
	var sampler sync.WaitGroup
	samples, seenFree := 0, 0
	sampler.Go(func() {
		for ctx.Err() == nil {
			var n int
			if err := w.pool.QueryRow(ctx, free).Scan(&n); err == nil && n > 0 {
				seenFree++
			}
			samples++
		}
	})
	together(n, func(i int) {
		_, err := w.reservations.Convert(w.ctx, w.caller, ids[i], "", fmt.Sprint("service-", i))
		if err != nil {
			t.Errorf("conversion %d: %v", i, err)
		}
	})
	stop()
	sampler.Wait()
	require.Positive(t, samples)
	require.Zero(t, seenFree)
	w.sound()
}

// A conversion that breaks between its two writes leaves the hold as it was and no binding, at each place.
//
// Requirements: R50. Cases: CO-08.
func TestBrokenConversionLeavesTheHold(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken on purpose")
	for _, place := range []gate.Place{gate.ChangeAfterServer, gate.ChangeAfterLock, gate.ConvertAfterBinding, gate.ConvertBeforeCommit} {
		t.Run(string(place), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			r := w.held("a").Reservation
			set := &gate.Set{}
			set.Arm(place, func(context.Context) error { return broken })
			_, err := w.reservations.Convert(gate.With(w.ctx, set), w.caller, r.ID, "", "service")
			require.ErrorIs(t, err, broken)
			require.Equal(t, 1, set.Reached(place))
			now, err := w.reservations.Reservation(w.ctx, w.caller, r.ID)
			require.NoError(t, err)
			require.Equal(t, reservation.StateHeld, now.State)
			require.Equal(t, r.ExpiresAt, now.ExpiresAt)
			require.Zero(t, one[int](w, `SELECT count(*) FROM bindings`))
			require.Equal(t, 1, one[int](w, `SELECT count(*) FROM event_feed`))
			w.sound()
			_, err = w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
			require.NoError(t, err)
			w.sound()
		})
	}
}

// deeds are the changes that need a live hold.
func (w *world) deeds(id reservation.ID) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"convert": func(ctx context.Context) error {
			_, err := w.reservations.Convert(ctx, w.caller, id, "", "service")
			return err
		},
		"renew": func(ctx context.Context) error {
			_, err := w.reservations.Renew(ctx, w.caller, id, "")
			return err
		},
		"take over": func(ctx context.Context) error {
			_, err := w.reservations.TakeOver(ctx, w.caller, id, "staff")
			return err
		},
	}
}

// With no sweeper at all an expired hold neither converts nor renews nor is taken over, and nothing is written but that
// it expired and, for a conversion, the durable event for support.
//
// Requirements: R02, R51, R53, R61.
func TestTheDeadlineIsKeptAtThePointOfUse(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"convert", "renew", "take over"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			r := w.held("a").Reservation
			w.expire(r.ID)
			require.ErrorIs(t, w.deeds(r.ID)[name](w.ctx), reservation.ErrExpired)
			require.Zero(t, one[int](w, `SELECT count(*) FROM bindings`))
			require.Equal(t, "expired", w.state(r.ID))
			refused := one[int](w, `SELECT count(*) FROM events WHERE type = 'reservation.conversion_refused'`)
			require.Equal(t, name == "convert", refused == 1)
			w.sound()
		})
	}
}

// The deadline passes while the change waits for the reservation's row, and again while it stands between lock and
// write: it is refused either way, since the clock is read in a statement that began after the locks.
//
// Requirements: R52. Faults: F-R3.
func TestDeadlineIsReadBehindTheLocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"convert", "renew", "take over"} {
		for _, wait := range []string{"for the row", "behind the locks"} {
			t.Run(name+" waits "+wait, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.servers(1)
				r := w.held("a").Reservation
				w.exec(`UPDATE reservations SET expires_at = clock_timestamp() + interval '700 milliseconds'`)
				var err error
				if wait == "for the row" {
					err = w.whileRowIsLocked(r.ID, w.deeds(r.ID)[name])
				} else {
					err = w.whileStoppedAt(gate.ChangeAfterLock, w.deeds(r.ID)[name])
				}
				require.ErrorIs(t, err, reservation.ErrExpired)
				require.Zero(t, one[int](w, `SELECT count(*) FROM bindings`))
				require.Equal(t, "expired", w.state(r.ID))
				w.sound()
			})
		}
	}
}

// untilExpired returns when the database's clock is past the deadline of every hold.
func (w *world) untilExpired() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return one[bool](w, `SELECT bool_and(expires_at <= clock_timestamp()) FROM reservations`)
	}, patience, 10*time.Millisecond)
}

// whileRowIsLocked runs a change that waits for the reservation's row until after the deadline.
func (w *world) whileRowIsLocked(id reservation.ID, deed func(ctx context.Context) error) error {
	w.t.Helper()
	s := w.session().do(`BEGIN`).do(`SELECT FROM reservations WHERE id = $1 FOR UPDATE`, rawID(string(id)))
	done := make(chan error, 1)
	go func() { done <- deed(w.ctx) }()
	w.someoneWaitsFor(s.pid())
	w.untilExpired()
	s.do(`COMMIT`)
	return <-done
}

// whileStoppedAt runs a change that stands still at a place until after the deadline.
func (w *world) whileStoppedAt(place gate.Place, deed func(ctx context.Context) error) error {
	w.t.Helper()
	ctx, arrived, release := w.pauseAt(place)
	done := make(chan error, 1)
	go func() { done <- deed(ctx) }()
	w.wait(arrived)
	w.untilExpired()
	release()
	return <-done
}

// Converting again for the same service is the same binding, for another a refusal that names the first; a cancelled
// reservation is refused in another way than an expired one.
//
// Requirements: R53.
func TestConvertTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(2)
	r := w.held("a").Reservation
	first, err := w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
	require.NoError(t, err)
	require.False(t, first.Repeated)
	again, err := w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
	require.NoError(t, err)
	require.True(t, again.Repeated)
	require.Equal(t, first.Binding, again.Binding)

	var converted *reservation.AlreadyConvertedError
	_, err = w.reservations.Convert(w.ctx, w.caller, r.ID, "", "other")
	require.ErrorAs(t, err, &converted)
	require.Equal(t, "service", converted.ServiceID)
	_, err = w.reservations.Cancel(w.ctx, w.caller, r.ID, "", reservation.Cancellation{Reason: reservation.CancelStaff})
	require.ErrorAs(t, err, &converted)

	other := w.held("b").Reservation
	_, err = w.reservations.Convert(w.ctx, w.caller, other.ID, "", "service")
	require.ErrorIs(t, err, reservation.ErrServiceAlreadyBound)
	_, err = w.reservations.Cancel(w.ctx, w.caller, other.ID, "", reservation.Cancellation{Reason: reservation.CancelFraud})
	require.NoError(t, err)
	_, err = w.reservations.Convert(w.ctx, w.caller, other.ID, "", "service-2")
	require.ErrorIs(t, err, reservation.ErrCancelled)
	w.sound()
}

// A hold that was taken over again and again is sold with its newest token alone, also where nobody would guess how
// often it was.
//
// Requirements: R53.
func TestOnlyTheNewestTokenSells(t *testing.T) {
	t.Parallel()
	for _, times := range []int{0, 1, 2, 5} {
		t.Run(fmt.Sprintf("taken over %d times", times), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			r := w.held("a").Reservation
			tokens := []string{w.reservations.HoldToken(r)}
			for range times {
				taken, err := w.reservations.TakeOver(w.ctx, w.caller, r.ID, "staff")
				require.NoError(t, err)
				tokens = append(tokens, w.reservations.HoldToken(taken))
			}
			for _, old := range tokens[:times] {
				_, err := w.reservations.Convert(w.ctx, w.caller, r.ID, old, "service")
				require.ErrorIs(t, err, reservation.ErrNotHolder)
			}
			sold, err := w.reservations.Convert(w.ctx, w.caller, r.ID, tokens[times], "service")
			require.NoError(t, err)
			require.False(t, sold.Repeated)
			w.sound()
		})
	}
}

// Ten at once convert one reservation for one service: one binding, ten equal answers.
//
// Requirements: R53. Faults: F-R7.
func TestConvertTenTimesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	r := w.held("a").Reservation
	bindings := make([]reservation.BindingID, 10)
	together(10, func(i int) {
		c, err := w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
		if err != nil {
			t.Errorf("conversion %d: %v", i, err)
			return
		}
		bindings[i] = c.Binding.ID
	})
	for _, b := range bindings {
		require.Equal(t, bindings[0], b)
	}
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM bindings`))
	w.sound()
}
