//go:build gates

package concurrency_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres/gate"
)

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
