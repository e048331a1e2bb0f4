//go:build gates

package concurrency_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/reservation"
)

// Fifty buyers of one server, round after round: one gets it, and whoever comes again as told hears in the end that
// there is nothing. What is free is counted from the rows, and is right after each round.
//
// Requirements: R16, R18. Cases: HO-01.
func TestFiftyBuyersRoundAfterRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	for round := range 10 {
		stop := w.auditor()
		outcomes := make([]*allocation.Outcome, 50)
		together(len(outcomes), func(i int) {
			var err error
			for again := true; again; again = err == nil && outcomes[i].Code == allocation.OutcomeContended {
				if outcomes[i], err = w.allocator.Reserve(w.ctx, w.caller, request(fmt.Sprintf("%d-%d", round, i))); err != nil {
					t.Errorf("buyer %d: %v", i, err)
				}
			}
		})
		stop()
		require.False(t, t.Failed())
		require.Equal(t, map[string]int{"reserved": 1, "no_capacity/all_held": 49}, tally(outcomes), "round %d", round)
		require.Zero(t, one[int](w, free))
		for _, o := range outcomes {
			if o.Code == allocation.OutcomeReserved {
				w.cancelled(o.Reservation.ID)
			}
		}
		require.Equal(t, 1, one[int](w, free))
	}
	w.sound()
}

// Whoever begins anew with the same order line finds their own hold, not a sold-out shop, and its deadline stays.
//
// Requirements: R46. Cases: HO-06.
func TestOwnHoldIsInNobodysOwnWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	first := w.held("a")
	again := request("a")
	again.IdempotencyKey = "another"
	second := w.reserve(w.ctx, again)
	require.Equal(t, allocation.OutcomeExisting, second.Code)
	require.Equal(t, first.Reservation.ID, second.Reservation.ID)
	require.Equal(t, first.Reservation.Server, second.Reservation.Server)
	require.Equal(t, first.Reservation.ExpiresAt, second.Reservation.ExpiresAt)
	require.Equal(t, first.HoldToken, second.HoldToken)
	w.refused(w.reserve(w.ctx, request("b")), allocation.OutcomeNoCapacity, allocation.CauseAllHeld)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations WHERE state = 'held'`))
	w.sound()
}

// A customer at the limit is refused for the limit, others are not, and a cancellation makes room.
//
// Cases: HO-11.
func TestHoldLimitMakesRoomAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(10)
	w.exec(`UPDATE organizations SET hold_limit = 3`)
	of := func(customer, name string) *allocation.Outcome {
		req := request(name)
		req.CustomerRef = customer
		return w.reserve(w.ctx, req)
	}
	var last *allocation.Outcome
	for i := range 3 {
		last = of("a", fmt.Sprint(i))
		require.Equal(t, allocation.OutcomeReserved, last.Code)
	}
	require.Equal(t, allocation.OutcomeHoldLimit, of("a", "fourth").Code)
	require.Equal(t, 7, one[int](w, free), "nothing was taken for it")
	require.Equal(t, allocation.OutcomeReserved, of("b", "other").Code)
	w.cancelled(last.Reservation.ID)
	require.Equal(t, allocation.OutcomeReserved, of("a", "fourth").Code)
	w.sound()
}

// Paid after the deadline: refused in full, whether the server is free or another's by then, with an event for
// support, and nothing is bound, here or elsewhere.
//
// Requirements: R51, R53. Cases: CO-02.
func TestPaidAfterTheDeadline(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]bool{"the server is still free": false, "another holds it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			late := w.held("late").Reservation
			w.expire(late.ID)
			if others {
				w.held("other")
			}
			for range 2 {
				_, err := w.reservations.Convert(w.ctx, w.caller, late.ID, "", "service")
				require.ErrorIs(t, err, reservation.ErrExpired)
			}
			require.Positive(t, one[int](w, `SELECT count(*) FROM events WHERE type = 'reservation.conversion_refused' AND reservation_id = $1`, rawID(string(late.ID))))
			require.Zero(t, one[int](w, `SELECT count(*) FROM bindings`))
			if others {
				require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations WHERE state = 'held' AND order_id = 'order-other'`))
			}
			w.sound()
		})
	}
}

// What is sold stays sold, whatever comes late: its old deadline, sweeps, renewals, cancellations.
//
// Requirements: R13, R53. Cases: CO-03.
func TestSoldStaysSold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	r := w.held("a").Reservation
	w.deadlineIn(10 * time.Second)
	c, err := w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
	require.NoError(t, err)
	events := one[int](w, `SELECT count(*) FROM event_feed`)
	require.Eventually(t, func() bool { return one[bool](w, `SELECT expires_at <= clock_timestamp() FROM reservations`) }, patience, 10*time.Millisecond)
	for range 5 {
		require.Zero(t, swept(w, w.ctx, w.reservations))
		var sold *reservation.AlreadyConvertedError
		_, err = w.reservations.Cancel(w.ctx, w.caller, r.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
		require.ErrorAs(t, err, &sold)
		_, err = w.reservations.Renew(w.ctx, w.caller, r.ID, "")
		require.ErrorAs(t, err, &sold)
		_, err = w.reservations.TakeOver(w.ctx, w.caller, r.ID, "late")
		require.ErrorAs(t, err, &sold)
	}
	still, err := w.reservations.Binding(w.ctx, w.caller, c.Binding.ID)
	require.NoError(t, err)
	require.True(t, still.Active())
	require.Equal(t, c.Binding, still)
	require.Equal(t, events, one[int](w, `SELECT count(*) FROM event_feed`))
}

// Retiring asks who has the server: a hold or a binding is in the way, an ended one is not. A binding whose server's row
// somebody removed by hand can still be ended, and blocks nothing.
//
// Cases: CO-11.
func TestRetiringAndWhatIsInItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(3)
	held, sold, gone := w.held("held").Reservation, w.held("sold").Reservation, w.held("gone").Reservation
	c, err := w.reservations.Convert(w.ctx, w.caller, sold.ID, "", "service")
	require.NoError(t, err)
	w.cancelled(gone.ID)
	change := func(r *reservation.Reservation, to inventory.State) error {
		_, err := w.reservations.ChangeServerState(w.ctx, w.caller, reservation.StateChange{ServerID: r.Server.ID, State: to, Reason: "old"})
		return err
	}
	require.NoError(t, change(gone, inventory.StateMaintenance))
	require.ErrorIs(t, change(held, inventory.StateRetired), reservation.ErrServerInUse)
	require.ErrorIs(t, change(sold, inventory.StateRetired), reservation.ErrServerInUse)
	require.NoError(t, change(gone, inventory.StateRetired))
	_, err = w.reservations.EndBinding(w.ctx, w.caller, c.Binding.ID, reservation.Ending{Reason: "done"})
	require.NoError(t, err)
	require.NoError(t, change(sold, inventory.StateRetired))

	orphan, err := w.reservations.Convert(w.ctx, w.caller, held.ID, "", "orphan")
	require.NoError(t, err)
	tx, err := w.pool.Begin(w.ctx)
	require.NoError(t, err)
	_, err = tx.Exec(w.ctx, `SET LOCAL session_replication_role = replica`) // past every trigger
	require.NoError(t, err)
	_, err = tx.Exec(w.ctx, `DELETE FROM servers WHERE id = $1`, rawID(string(held.Server.ID)))
	require.NoError(t, err)
	require.NoError(t, tx.Commit(w.ctx))
	_, err = w.reservations.EndBinding(w.ctx, w.caller, orphan.Binding.ID, reservation.Ending{Reason: "nobody has it"})
	require.NoError(t, err)
	require.Zero(t, one[int](w, `SELECT count(*) FROM occupancy`))
	w.sound("I10 organizations are apart") // of whose statements one is that the server is there
}

// No refusal uses up its key: each repetition is a real attempt, until one reserves.
//
// Cases: ID-05.
func TestRefusalUsesUpNoKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.servers(1)[0]
	first := w.held("first").Reservation
	for range 2 {
		w.refused(w.reserve(w.ctx, request("k")), allocation.OutcomeNoCapacity, allocation.CauseAllHeld)
	}
	w.cancelled(first.ID)
	tx, err := w.pool.Begin(w.ctx)
	require.NoError(t, err)
	_, err = tx.Exec(w.ctx, `SELECT FROM servers WHERE id = $1 FOR UPDATE`, server)
	require.NoError(t, err)
	w.refused(w.reserve(w.ctx, request("k")), allocation.OutcomeContended, allocation.CauseServersTaken)
	require.NoError(t, tx.Rollback(w.ctx))
	w.held("k")
	require.Equal(t, 4, one[int](w, `SELECT count(*) FROM decisions d WHERE d.order_id = 'order-k'`), "each is on record")
	w.sound()
}

// cancelled cancels a reservation that must be held.
func (w *world) cancelled(id reservation.ID) {
	w.t.Helper()
	r, err := w.reservations.Cancel(w.ctx, w.caller, id, "", reservation.Cancellation{Reason: reservation.CancelOther})
	require.NoError(w.t, err)
	require.Equal(w.t, reservation.StateCancelled, r.State)
}
