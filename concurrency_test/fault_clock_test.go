//go:build gates && unix

package concurrency_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// clock is a PostgreSQL whose clock the test sets.
type clock struct {
	t    *testing.T
	file string
	node *postgrestest.Node
}

// newClock starts one whose clock is off by so much. It takes libfaketime, of the package faketime.
func newClock(t *testing.T, off time.Duration) *clock {
	t.Helper()
	libraries, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1") // fails on a malformed pattern only
	if len(libraries) == 0 {
		t.Skip("libfaketime is not installed: install the package faketime")
	}
	dir := postgrestest.Dir(t)
	c := &clock{t: t, file: filepath.Join(dir, "offset")}
	c.set(off)
	c.node = postgrestest.NewNode(t, postgrestest.NodeOptions{Env: []string{
		"LD_PRELOAD=" + libraries[0], "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}})
	return c
}

// set moves the clock. The file is replaced, so that nobody reads half of it.
func (c *clock) set(off time.Duration) {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(c.file+".new", fmt.Appendf(nil, "%+d", int(off.Seconds())), 0o644))
	require.NoError(c.t, os.Rename(c.file+".new", c.file))
}

// off is how far the database's clock is from ours, in whole minutes.
func (w *world) off() int {
	w.t.Helper()
	return int(time.Until(one[time.Time](w, `SELECT clock_timestamp()`)).Round(time.Minute).Minutes())
}

// The database's clock jumps an hour ahead: every hold has expired at once, and is so for whoever asks, before anybody
// swept. Its servers go to the next who ask, the sweep takes the rest in batches, and nothing converts late.
//
// Requirements: R51, R61. Cases: EX-11. Faults: F-T1.
func TestClockJumpsAhead(t *testing.T) {
	t.Parallel()
	c := newClock(t, 0)
	w := worldAt(t, c.node.URL(), 40)
	holds := make([]*allocation.Outcome, 40)
	for i := range holds {
		holds[i] = w.held(fmt.Sprint(i))
	}
	sold, err := w.reservations.Convert(w.ctx, w.caller, holds[0].Reservation.ID, "", "service")
	require.NoError(t, err)

	c.set(time.Hour)
	require.Equal(t, 60, w.off())
	for _, hold := range holds[1:4] {
		id := hold.Reservation.ID
		_, err = w.reservations.Convert(w.ctx, w.caller, id, "", "late")
		require.ErrorIs(t, err, reservation.ErrExpired)
		_, err = w.reservations.Renew(w.ctx, w.caller, id, "")
		require.ErrorIs(t, err, reservation.ErrExpired)
	}
	shown, err := w.reservations.Reservations(w.ctx, w.caller, reservation.Filter{Limit: 100})
	require.NoError(t, err)
	for _, r := range shown {
		require.NotEqual(t, reservation.StateHeld, r.State)
	}
	w.held("after the jump")
	again, err := w.reservations.Convert(w.ctx, w.caller, sold.Reservation.ID, "", "service")
	require.NoError(t, err)
	require.True(t, again.Repeated, "what was sold stays sold")
	swept, err := w.reservations.Sweep(w.ctx, 10)
	require.NoError(t, err)
	require.Zero(t, swept.Failed)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations WHERE state = 'held'`))
	w.sound()
}

// The database's clock jumps an hour back: holds live longer, and are nobody else's meanwhile. Nothing gets a deadline
// before its beginning, and nothing is sold twice. When the clock is right again, so is everything.
//
// Requirements: R51. Cases: EX-11. Faults: F-T2.
func TestClockJumpsBack(t *testing.T) {
	t.Parallel()
	c := newClock(t, 0)
	w := worldAt(t, c.node.URL(), 3)
	first, second := w.held("first").Reservation, w.held("second").Reservation

	c.set(-time.Hour)
	require.Equal(t, -60, w.off())
	third := w.held("third").Reservation
	require.Equal(t, allocation.OutcomeNoCapacity, w.reserve(w.ctx, request("nobody")).Code)
	require.Zero(t, swept(w, w.ctx, w.reservations))
	_, err := w.reservations.Renew(w.ctx, w.caller, first.ID, "")
	require.True(t, err == nil || errors.Is(err, reservation.ErrRenewalLimit), "%v", err)
	_, err = w.reservations.Convert(w.ctx, w.caller, second.ID, "", "service")
	require.NoError(t, err)
	_, err = w.reservations.Cancel(w.ctx, w.caller, first.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
	require.NoError(t, err)
	require.NotEqual(t, first.ID, w.held("first again").Reservation.ID)
	require.Zero(t, one[int](w, `SELECT count(*) FROM reservations WHERE expires_at < created_at`))

	c.set(0)
	_, err = w.reservations.Convert(w.ctx, w.caller, third.ID, "", "late")
	require.ErrorIs(t, err, reservation.ErrExpired, "made an hour earlier, by the clock")
	w.sound("I8 the fence grows per server", "I2 no overlap over all history") // which are told by the clock, and that went back
}

// The queue's own deadlines do not keep the sweep away for long after the clock jumped, ahead or back, although the
// worker that led dies just then.
//
// Cases: EX-11. Faults: F-T1, F-T2.
func TestSweepGoesOnAfterAJumpOfTheClock(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock(t, 0)
			w := worldAt(t, c.node.URL(), 4)
			one := w.worker("one", nil)
			w.sweptByWorker(w.abandoned("before"))
			c.set(jump)
			one.kill()
			id := w.abandoned("after")
			w.worker("two", nil)
			w.sweptByWorker(id)
			w.sound("I8 the fence grows per server", "I2 no overlap over all history") // which are told by the clock, and that may have gone back
		})
	}
}

// The service's clock and the database's are five minutes apart, either way. Nothing is decided by the service's: holds
// live as long as they should, expire when they should, and are swept.
//
// Requirements: R51, R52. Faults: F-T3.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"the service is behind": 5 * time.Minute, "the service is ahead": -5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock(t, off)
			w := worldAt(t, c.node.URL(), 2000)
			require.Equal(t, int(off.Minutes()), w.off())
			w.exec(`UPDATE organizations SET hold_seconds = 120`) // shorter than the clocks are apart
			l := w.underLoad(c.node.URL(), 3, 1)
			l.until(6, toldHeld)
			l.stop()
			w.exec(`UPDATE servers SET state = 'ready'`)
			kept := w.heldSoon("kept")
			require.InDelta(t, 120, kept.ExpiresAt.Sub(one[time.Time](w, `SELECT clock_timestamp()`)).Seconds(), 60)
			_, err := w.reservations.Renew(w.ctx, w.caller, kept.ID, "")
			require.NoError(t, err)
			require.Zero(t, swept(w, w.ctx, w.reservations))
			w.expire(kept.ID)
			_, err = w.reservations.Convert(w.ctx, w.caller, kept.ID, "", "late")
			require.ErrorIs(t, err, reservation.ErrExpired)
			gone := w.heldSoon("abandoned")
			w.expire(gone.ID)
			w.worker("worker", nil)
			w.sweptByWorker(gone.ID)
			require.Empty(t, l.lost())
			w.sound()
		})
	}
}

// heldSoon reserves, again if others had the servers locked.
func (w *world) heldSoon(name string) *reservation.Reservation {
	w.t.Helper()
	var got *allocation.Outcome
	require.Eventually(w.t, func() bool {
		o, err := w.allocator.Reserve(context.WithoutCancel(w.ctx), w.caller, request(name))
		got = o
		return err == nil && o.Code == allocation.OutcomeReserved
	}, patience, 10*time.Millisecond)
	return got.Reservation
}
