//go:build gates

package concurrency_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// deadlocks counts what the database had to break up; a repeated transaction would hide them from the callers.
func (w *world) deadlocks() int {
	return one[int](w, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
}

// The server row is locked before the reservation row, everywhere: a conversion that stands between its two locks and a
// forced change of state of the same server come one after the other, with no deadlock to break up.
//
// Requirements: R47. Cases: HO-09.
func TestServerIsLockedBeforeReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	r := w.held("a").Reservation
	ctx, arrived, release := w.pauseAt(gate.ChangeAfterServer)
	converted := make(chan error, 1)
	go func() {
		_, err := w.reservations.Convert(ctx, w.caller, r.ID, "", "service")
		converted <- err
	}()
	w.wait(arrived)
	changed := make(chan error, 1)
	go func() {
		_, err := w.reservations.ChangeServerState(w.ctx, w.caller, reservation.StateChange{
			ServerID: r.Server.ID, State: inventory.StateMaintenance, Reason: "fan", Force: true,
		})
		changed <- err
	}()
	w.someoneWaits()
	release()
	require.NoError(t, <-converted)
	require.NoError(t, <-changed)
	require.Equal(t, "converted", w.state(r.ID))
	require.Zero(t, w.deadlocks())
	w.sound()
}

// Two requests, each with a dead hold of its own order line on the other's best server: neither waits for the other's
// row, so that they cannot deadlock.
//
// Requirements: R45, R61. Faults: F-R14.
func TestTwoReclaimsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(2)
	a, b := w.held("a").Reservation, w.held("b").Reservation
	w.expire(a.ID)
	w.expire(b.ID)
	wantsB, wantsA := request("a"), request("b")
	wantsB.IdempotencyKey, wantsB.Requirements.Servers = "second a", []inventory.ServerID{b.Server.ID}
	wantsA.IdempotencyKey, wantsA.Requirements.Servers = "second b", []inventory.ServerID{a.Server.ID}
	first := w.paused(gate.ReserveAfterList, wantsB) // has moved a's hold, uncommitted
	second := w.receive(w.begin(w.ctx, wantsA))      // wants a's server, whose old row is locked
	require.NoError(t, second.err)
	require.Equal(t, 1, second.outcome.Decision.Skipped)
	done := first()
	require.NoError(t, done.err)
	require.Equal(t, allocation.OutcomeReserved, done.outcome.Code)
	require.Zero(t, w.deadlocks())
	w.sound()
}

// Forty workers do everything at once to five servers: no failure but the refusals that are foreseen, no deadlock, and
// every invariant holds at every sample and at the end.
//
// Requirements: R01, R60. Cases: HO-01, HO-09.
func TestStormOnFiveServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(5)
	w.exec(`UPDATE organizations SET hold_seconds = 1`)
	stop := w.auditor()
	together(40, func(worker int) {
		for turn := range 15 {
			if err := w.anything(worker, turn); err != nil && !foreseen(err) {
				t.Errorf("worker %d, turn %d: %v", worker, turn, err)
			}
		}
	})
	require.Positive(t, stop())
	require.Zero(t, w.deadlocks())
	w.sound()
}

// anything reserves and then does one of the things that can be done with a reservation.
func (w *world) anything(worker, turn int) error {
	o, err := w.allocator.Reserve(w.ctx, w.caller, request(fmt.Sprint(worker, "-", turn)))
	if err != nil || o.Refused() {
		return err
	}
	id, server := o.Reservation.ID, o.Reservation.Server.ID
	switch rand.IntN(6) {
	case 0:
		_, err = w.reservations.Renew(w.ctx, w.caller, id, o.HoldToken)
	case 1:
		_, err = w.reservations.Cancel(w.ctx, w.caller, id, o.HoldToken, reservation.Cancellation{Reason: reservation.CancelOther})
	case 2:
		var c *reservation.Conversion
		if c, err = w.reservations.Convert(w.ctx, w.caller, id, o.HoldToken, fmt.Sprint(worker, "-", turn)); err == nil {
			_, err = w.reservations.EndBinding(w.ctx, w.caller, c.Binding.ID, reservation.Ending{Reason: "over"})
		}
	case 3:
		_, err = w.reservations.TakeOver(w.ctx, w.caller, id, "staff")
	case 4:
		_, err = w.reservations.Sweep(w.ctx, 10)
	case 5:
		_, err = w.reservations.ChangeServerState(w.ctx, w.caller, reservation.StateChange{
			ServerID: server, State: inventory.StateMaintenance, Reason: "fan", Force: true,
		})
	}
	if err != nil {
		return err
	}
	_, err = w.reservations.ChangeServerState(w.ctx, w.caller, reservation.StateChange{ServerID: server, State: inventory.StateReady, Reason: "ok"})
	return err
}

// foreseen tells the answers that other workers can bring about.
func foreseen(err error) bool {
	var converted *reservation.AlreadyConvertedError
	return errors.Is(err, reservation.ErrExpired) || errors.Is(err, reservation.ErrCancelled) || errors.Is(err, reservation.ErrServerInUse) ||
		errors.Is(err, reservation.ErrRenewalLimit) || errors.Is(err, reservation.ErrNotHolder) || errors.As(err, &converted)
}
