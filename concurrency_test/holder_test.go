//go:build gates

package concurrency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// A checkout proves by the token that it is the holder; order completion and staff may leave the token out; whoever
// gives one must give the right one.
func TestHoldTokenRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(2)
	made, other := w.held("a"), w.held("b")
	orders := w.checkout()
	orders.Scopes = identity.NewScopeSet(identity.ScopeOrders)
	id := made.Reservation.ID
	for name, c := range map[string]struct {
		caller  identity.Caller
		token   string
		allowed bool
	}{
		"checkout with its token":            {w.checkout(), made.HoldToken, true},
		"checkout without":                   {w.checkout(), "", false},
		"checkout with another hold's token": {w.checkout(), other.HoldToken, false},
		"checkout with garbage":              {w.checkout(), "hold_test_AAAA", false},
		"orders without":                     {orders, "", true},
		"orders with a wrong one":            {orders, other.HoldToken, false},
	} {
		_, err := w.reservations.Renew(w.ctx, c.caller, id, c.token)
		if !c.allowed {
			require.ErrorIs(t, err, reservation.ErrNotHolder, name)
			continue
		}
		require.NotErrorIs(t, err, reservation.ErrNotHolder, name)
	}
	w.sound()
}

// Staff take a hold over: a larger fence, a new token, the old one dies, and a replay gives no token.
// Faults: F-R9.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	made := w.held("a")
	taken, err := w.reservations.TakeOver(w.ctx, w.caller, made.Reservation.ID, "customer on the phone")
	require.NoError(t, err)
	require.Greater(t, taken.Fence, made.Reservation.Fence)
	require.True(t, taken.TakenOver())
	token := w.reservations.HoldToken(taken)
	require.NotEqual(t, made.HoldToken, token)

	_, err = w.reservations.Renew(w.ctx, w.checkout(), taken.ID, made.HoldToken)
	require.ErrorIs(t, err, reservation.ErrNotHolder)
	replay := w.reserve(w.ctx, request("a"))
	require.Equal(t, allocation.OutcomeReplayed, replay.Code)
	require.Empty(t, replay.HoldToken)
	require.True(t, replay.Reservation.TakenOver())
	_, err = w.reservations.Convert(w.ctx, w.checkout(), taken.ID, token, "service")
	require.NoError(t, err)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM audit WHERE action = 'reservation.taken_over'`))
	w.sound()
}

// Two organizations on one database: what one does with the other's ids finds nothing, and nothing of one counts for
// the other. Promise 9.
// Faults: F-A1.
func TestOrganizationsAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	made := w.held("a")
	c, err := w.reservations.Convert(w.ctx, w.caller, made.Reservation.ID, "", "service")
	require.NoError(t, err)
	w.exec(`INSERT INTO organizations (id, name) VALUES ('rival', 'Rival')`)
	rival := identity.LocalCaller("rival", identity.Actor{Kind: identity.ActorPerson, ID: "eve"})

	ctx := w.ctx
	for name, err := range map[string]error{
		"read":         second(w.reservations.Reservation(ctx, rival, made.Reservation.ID)),
		"renew":        second(w.reservations.Renew(ctx, rival, made.Reservation.ID, made.HoldToken)),
		"cancel":       second(w.reservations.Cancel(ctx, rival, made.Reservation.ID, made.HoldToken, reservation.Cancellation{Reason: "other"})),
		"convert":      second(w.reservations.Convert(ctx, rival, made.Reservation.ID, made.HoldToken, "mine")),
		"take over":    second(w.reservations.TakeOver(ctx, rival, made.Reservation.ID, "mine")),
		"binding":      second(w.reservations.Binding(ctx, rival, c.Binding.ID)),
		"end":          second(w.reservations.EndBinding(ctx, rival, c.Binding.ID, reservation.Ending{Reason: "mine"})),
		"decision":     second(w.allocator.DecisionByID(ctx, rival, made.Decision.ID)),
		"server state": second(w.reservations.ChangeServerState(ctx, rival, reservation.StateChange{ServerID: made.Reservation.Server.ID, State: inventory.StateFailed, Force: true})),
		"bind":         second(w.reservations.BindDirectly(ctx, rival, reservation.DirectBinding{ServerID: made.Reservation.Server.ID, ServiceID: "x"})),
	} {
		require.ErrorIs(t, err, reservation.ErrNotFound, name)
	}
	o, err := w.allocator.Reserve(ctx, rival, request("a")) // the same key and order as the other's
	require.NoError(t, err)
	require.Equal(t, allocation.CauseInventoryEmpty, o.Decision.Cause)
	require.Zero(t, o.Decision.Servers)
	list, err := w.reservations.Reservations(ctx, rival, reservation.Filter{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, list)
	w.sound()
}

func second[T any](_ T, err error) error { return err }

// Taking a held or bound server out of service is refused; with force the hold is cancelled in that person's name while
// a binding stays, flagged by the server's state. The end of a binding sends the server to cleaning, or to failed.
//
// Cases: CO-10, CO-11.
func TestServerStateAgainstHoldsAndBindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	made := w.held("a")
	change := reservation.StateChange{ServerID: made.Reservation.Server.ID, State: inventory.StateMaintenance, Reason: "fan"}
	_, err := w.reservations.ChangeServerState(w.ctx, w.caller, change)
	require.ErrorIs(t, err, reservation.ErrServerInUse)
	change.Force = true
	server, err := w.reservations.ChangeServerState(w.ctx, w.caller, change)
	require.NoError(t, err)
	require.Equal(t, inventory.StateMaintenance, server.State)
	gone, err := w.reservations.Reservation(w.ctx, w.caller, made.Reservation.ID)
	require.NoError(t, err)
	require.Equal(t, reservation.StateCancelled, gone.State)
	require.Equal(t, "fan", gone.EndText)
	_, err = w.reservations.Convert(w.ctx, w.caller, made.Reservation.ID, "", "service")
	require.ErrorIs(t, err, reservation.ErrCancelled)

	change.State, change.Force = inventory.StateReady, false
	_, err = w.reservations.ChangeServerState(w.ctx, w.caller, change)
	require.NoError(t, err)
	c, err := w.reservations.Convert(w.ctx, w.caller, w.held("b").Reservation.ID, "", "service")
	require.NoError(t, err)
	change.State, change.Force = inventory.StateMaintenance, true
	_, err = w.reservations.ChangeServerState(w.ctx, w.caller, change)
	require.NoError(t, err)
	still, err := w.reservations.Binding(w.ctx, w.caller, c.Binding.ID)
	require.NoError(t, err)
	require.True(t, still.Active())

	_, err = w.reservations.EndBinding(w.ctx, w.caller, c.Binding.ID, reservation.Ending{Reason: "left", DeliveryFailed: true})
	require.NoError(t, err)
	require.Equal(t, "failed", one[string](w, `SELECT state FROM servers`))
	again, err := w.reservations.EndBinding(w.ctx, w.caller, c.Binding.ID, reservation.Ending{Reason: "left again"})
	require.NoError(t, err)
	require.Equal(t, "left", again.EndReason)
	w.sound()
}

// A server sold before Allocator came is bound directly, and never on top of a hold or a binding.
func TestDirectBinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := serverID(w.servers(1)[0])
	bind := reservation.DirectBinding{ServerID: server, ServiceID: "old-1", Reason: "sold in 2024"}
	b, err := w.reservations.BindDirectly(w.ctx, w.caller, bind)
	require.NoError(t, err)
	require.True(t, b.Active())
	bind.ServiceID = "old-2"
	_, err = w.reservations.BindDirectly(w.ctx, w.caller, bind)
	require.ErrorIs(t, err, reservation.ErrServerInUse)
	w.refused(w.reserve(w.ctx, request("a")), allocation.OutcomeNoCapacity, allocation.CauseAllSold)

	w.servers(1)
	held := w.held("b")
	bind.ServerID = held.Reservation.Server.ID
	_, err = w.reservations.BindDirectly(w.ctx, w.caller, bind)
	require.ErrorIs(t, err, reservation.ErrServerInUse)
	w.expire(held.Reservation.ID)
	_, err = w.reservations.BindDirectly(w.ctx, w.caller, bind)
	require.NoError(t, err)
	require.Equal(t, "expired", w.state(held.Reservation.ID))
	w.sound()
}
