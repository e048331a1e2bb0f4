//go:build gates

package concurrency_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
)

// freezeClock puts the services on connections whose clock_timestamp() stands still where the test sets it: a function
// of that name in a schema that is searched before the system's own. The schema's own rules keep the real clock, so the
// time is set in the far future, where they find nothing past its deadline.
func (w *world) freezeClock(at time.Time) (set func(time.Time)) {
	w.t.Helper()
	w.exec(`CREATE SCHEMA frozen`)
	w.exec(`CREATE TABLE frozen.clock (at timestamptz NOT NULL)`)
	w.exec(`INSERT INTO frozen.clock VALUES ($1)`, at)
	w.exec(`CREATE FUNCTION frozen.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE RETURN (SELECT at FROM frozen.clock)`)
	w.serve(w.searching("frozen"))
	return func(at time.Time) { w.exec(`UPDATE frozen.clock SET at = $1`, at) }
}

// Exactly at its deadline a reservation is expired for everybody, and a microsecond before it for nobody: whoever reads,
// renews, converts, cancels, takes over, sweeps, or wants its server or its order line.
//
// Requirements: R52, R61. Cases: EX-10, LE-01.
func TestOneSideOfTheDeadlineEverywhere(t *testing.T) {
	t.Parallel()
	start := time.Date(2096, 11, 30, 12, 0, 0, 0, time.UTC)
	asks := map[string]func(w *world, r *reservation.Reservation) (alive bool){
		"read": func(w *world, r *reservation.Reservation) bool {
			now, err := w.reservations.Reservation(w.ctx, w.caller, r.ID)
			require.NoError(w.t, err)
			return now.State == reservation.StateHeld
		},
		"list": func(w *world, _ *reservation.Reservation) bool {
			list, err := w.reservations.Reservations(w.ctx, w.caller, reservation.Filter{
				States: []reservation.State{reservation.StateHeld}, Limit: 10,
			})
			require.NoError(w.t, err)
			return len(list) == 1
		},
		"renew": func(w *world, r *reservation.Reservation) bool {
			_, err := w.reservations.Renew(w.ctx, w.caller, r.ID, "")
			return err == nil
		},
		"convert": func(w *world, r *reservation.Reservation) bool {
			_, err := w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
			return err == nil
		},
		"take over": func(w *world, r *reservation.Reservation) bool {
			_, err := w.reservations.TakeOver(w.ctx, w.caller, r.ID, "staff")
			return err == nil
		},
		"cancel": func(w *world, r *reservation.Reservation) bool {
			now, err := w.reservations.Cancel(w.ctx, w.caller, r.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
			require.NoError(w.t, err)
			return now.State == reservation.StateCancelled
		},
		"sweep": func(w *world, _ *reservation.Reservation) bool {
			swept, err := w.reservations.Sweep(w.ctx, 10)
			require.NoError(w.t, err)
			return swept.Expired == 0
		},
		"another order wants the server": func(w *world, _ *reservation.Reservation) bool {
			return w.reserve(w.ctx, request("b")).Code == allocation.OutcomeNoCapacity
		},
		"the order line wants again": func(w *world, _ *reservation.Reservation) bool {
			again := request("a")
			again.IdempotencyKey = "again"
			return w.reserve(w.ctx, again).Code == allocation.OutcomeExisting
		},
		"an operator takes the server out": func(w *world, r *reservation.Reservation) bool {
			_, err := w.reservations.ChangeServerState(w.ctx, w.caller, reservation.StateChange{
				ServerID: r.Server.ID, State: "maintenance", Reason: "fan",
			})
			return err != nil
		},
		"an operator binds directly": func(w *world, r *reservation.Reservation) bool {
			_, err := w.reservations.BindDirectly(w.ctx, w.caller, reservation.DirectBinding{
				ServerID: r.Server.ID, ServiceID: "old", Reason: "sold before",
			})
			return err != nil
		},
	}
	for name, ask := range asks {
		for when, alive := range map[time.Duration]bool{-time.Microsecond: true, 0: false} {
			t.Run(name+" at the deadline "+when.String(), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.servers(1)
				set := w.freezeClock(start)
				r := w.held("a").Reservation
				require.Equal(t, start.Add(15*time.Minute), r.ExpiresAt)
				set(r.ExpiresAt.Add(when))
				require.Equal(t, alive, ask(w, r))
				w.sound("I4 decided in time")
			})
		}
	}
}

// A renewal sets now plus the hold time, never an earlier deadline and never one beyond an hour after the creation;
// one that would move nothing is refused. Nothing but a renewal moves the deadline.
//
// Requirements: R54. Cases: EX-08.
func TestRenewalsAndTheirCeiling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	start := time.Date(2096, 11, 30, 12, 0, 0, 0, time.UTC)
	set := w.freezeClock(start)
	r := w.held("a").Reservation
	require.Equal(t, start.Add(time.Hour), r.MaxExpiresAt)
	for minute := 10; minute <= 40; minute += 10 {
		set(start.Add(time.Duration(minute) * time.Minute))
		renewed, err := w.reservations.Renew(w.ctx, w.caller, r.ID, "")
		require.NoError(t, err)
		require.Equal(t, start.Add(time.Duration(minute+15)*time.Minute), renewed.ExpiresAt)
	}
	set(start.Add(50 * time.Minute))
	last, err := w.reservations.Renew(w.ctx, w.caller, r.ID, "")
	require.NoError(t, err)
	require.Equal(t, start.Add(time.Hour), last.ExpiresAt)
	set(start.Add(55 * time.Minute))
	_, err = w.reservations.Renew(w.ctx, w.caller, r.ID, "")
	require.ErrorIs(t, err, reservation.ErrRenewalLimit)

	require.True(t, w.reserve(w.ctx, request("b")).Refused())
	now, err := w.reservations.Reservation(w.ctx, w.caller, r.ID)
	require.NoError(t, err)
	require.Equal(t, last.ExpiresAt, now.ExpiresAt)
	w.sound()
}

// An interrupted payment that is resumed at 14:59 converts.
//
// Requirements: R54, R59.
func TestConvertsAtFourteenFiftyNine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	start := time.Date(2096, 11, 30, 12, 0, 0, 0, time.UTC)
	set := w.freezeClock(start)
	r := w.held("a").Reservation
	set(start.Add(14*time.Minute + 59*time.Second))
	_, err := w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
	require.NoError(t, err)
	w.sound()
}
