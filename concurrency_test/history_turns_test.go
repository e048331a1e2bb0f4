//go:build gates

package concurrency_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// turns are what a client can do in one turn.
type turns struct {
	*house
	rng    *rand.Rand
	chance *rand.Rand // of the faults that its calls meet; nil: none
	client int
	name   string
}

// take takes one of the turns by chance, and sometimes gives up waiting for the answer.
func (t *turns) take(ctx context.Context) {
	n, hasty, wait := t.rng.IntN(100), t.rng.IntN(12) == 0, t.rng.Int64N(int64(10*time.Millisecond))
	known := t.known(ctx)
	if hasty {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(wait))
		defer cancel()
	}
	switch {
	case n < 35 || known == nil:
		t.reserve(ctx, request(t.name))
	case n < 42:
		t.again(ctx)
	case n < 54:
		t.renew(ctx, known)
	case n < 59:
		t.cancel(ctx, known)
	case n < 69:
		t.convert(ctx, known)
	case n < 73:
		t.takeOver(ctx, known)
	case n < 83:
		t.end(ctx)
	case n < 93:
		t.state(ctx)
	default:
		t.atTheDeadline(ctx, known)
	}
}

// atTheDeadline does something with a hold a few milliseconds before its deadline or after it.
func (t *turns) atTheDeadline(ctx context.Context, hold *allocation.Outcome) {
	spread := time.Duration(t.rng.Int64N(int64(10*time.Millisecond))) - 5*time.Millisecond
	select {
	case <-ctx.Done():
		return
	case <-time.After(min(time.Until(hold.Reservation.ExpiresAt)+spread, historyHold)):
	}
	deeds := []func(context.Context, *allocation.Outcome){t.convert, t.renew, t.cancel, t.takeOver}
	deeds[t.rng.IntN(len(deeds))](ctx, hold)
}

// known is a hold that this house knows, with its token, or one of the latest of the organization, without.
func (t *turns) known(ctx context.Context) *allocation.Outcome {
	t.mu.Lock()
	holds := slices.Clone(t.holds)
	t.mu.Unlock()
	if len(holds) > 0 && t.rng.IntN(3) > 0 {
		// The youngest are the likeliest, and the old ones are still tried.
		at := len(holds) - 1 - int(float64(len(holds))*t.rng.Float64()*t.rng.Float64()*t.rng.Float64())
		return &holds[max(at, 0)]
	}
	list, err := t.reservations.Reservations(ctx, t.staff(), reservation.Filter{Limit: 6})
	if err != nil || len(list) == 0 {
		return nil
	}
	return &allocation.Outcome{Reservation: list[t.rng.IntN(len(list))]}
}

// caller is the holder, with the token, or staff, without one.
func (t *turns) caller(hold *allocation.Outcome) identity.Caller {
	if hold.HoldToken == "" {
		return t.staff()
	}
	return identity.Caller{
		Organization: t.Org, Scopes: identity.NewScopeSet(identity.ScopeCheckout, identity.ScopeOrders),
		Actor: identity.Actor{Kind: identity.ActorKey, ID: "key_checkout"},
	}
}

// about begins the record of a call about a hold.
func (t *turns) about(what op, hold *allocation.Outcome) *record {
	r := &record{Client: t.client, Op: what, Server: hold.Reservation.Server.ID, Reservation: hold.Reservation.ID}
	if hold.HoldToken != "" {
		r.Generation = hold.Reservation.Generation
	}
	return r
}

func (t *turns) reserve(ctx context.Context, req allocation.Request) *allocation.Outcome {
	r := &record{Client: t.client, Op: opReserve, Key: req.IdempotencyKey}
	if len(req.Requirements.Servers) == 1 {
		r.Server = req.Requirements.Servers[0]
	}
	t.asked(req)
	var made *allocation.Outcome
	t.call(ctx, r, func(ctx context.Context) string {
		o, err := t.allocator.Reserve(ctx, t.staff(), req)
		switch {
		case err != nil:
			return lost(err)
		case o.Code == allocation.OutcomeReserved:
			made = o
			t.got(o.Reservation, o.HoldToken)
			r.about(o.Reservation)
			r.At = o.Reservation.CreatedAt.UnixMicro()
			return "reserved"
		case o.Refused():
			return refusalOf(o)
		default: // the same again: what it is told is the present state
			r.Op = opRead
			r.about(o.Reservation)
			return string(o.Reservation.State)
		}
	})
	return made
}

// about notes which reservation an answer is about.
func (r *record) about(res *reservation.Reservation) {
	r.Server, r.Reservation, r.Until = res.Server.ID, res.ID, res.ExpiresAt.UnixMicro()
}

func refusalOf(o *allocation.Outcome) string {
	if o.Code == allocation.OutcomeContended {
		return string(o.Decision.Cause)
	}
	return string(o.Code)
}

// again sends an earlier request once more, with the same key or for the same line with another.
func (t *turns) again(ctx context.Context) {
	t.mu.Lock()
	if len(t.requests) == 0 {
		t.mu.Unlock()
		return
	}
	req := t.requests[t.rng.IntN(len(t.requests))]
	t.mu.Unlock()
	if t.rng.IntN(2) == 0 {
		req.IdempotencyKey = t.name
	}
	t.reserve(ctx, req)
}

func (t *turns) renew(ctx context.Context, hold *allocation.Outcome) {
	r := t.about(opRenew, hold)
	t.call(ctx, r, func(ctx context.Context) string {
		now, err := t.reservations.Renew(ctx, t.caller(hold), r.Reservation, hold.HoldToken)
		if err == nil {
			r.Until = now.ExpiresAt.UnixMicro()
		}
		return lost(err)
	})
}

func (t *turns) cancel(ctx context.Context, hold *allocation.Outcome) {
	r := t.about(opCancel, hold)
	t.call(ctx, r, func(ctx context.Context) string {
		now, err := t.reservations.Cancel(ctx, t.caller(hold), r.Reservation, hold.HoldToken, reservation.Cancellation{Reason: reservation.CancelOther})
		if err != nil {
			return lost(err)
		}
		r.At = now.EndedAt.UnixMicro()
		return string(now.State)
	})
}

func (t *turns) convert(ctx context.Context, hold *allocation.Outcome) {
	r := t.about(opConvert, hold)
	service := "for " + string(r.Reservation)
	if t.rng.IntN(2) == 0 {
		service = "for " + t.name
	}
	t.call(ctx, r, func(ctx context.Context) string {
		c, err := t.reservations.Convert(ctx, t.caller(hold), r.Reservation, hold.HoldToken, service)
		if err != nil {
			return lost(err)
		}
		r.Binding, r.At = c.Binding.ID, c.Binding.Since.UnixMicro()
		if c.Repeated {
			return "repeated"
		}
		return "ok"
	})
}

func (t *turns) takeOver(ctx context.Context, hold *allocation.Outcome) {
	r := t.about(opTakeOver, hold)
	r.Generation = 0
	t.call(ctx, r, func(ctx context.Context) string {
		now, err := t.reservations.TakeOver(ctx, t.staff(), r.Reservation, "staff")
		if err == nil {
			t.got(now, t.reservations.HoldToken(now))
		}
		return lost(err)
	})
}

// end ends one of the active bindings.
func (t *turns) end(ctx context.Context) {
	active := true
	list, err := t.reservations.Bindings(ctx, t.staff(), reservation.BindingFilter{Active: &active, Limit: 10})
	if err != nil || len(list) == 0 {
		return
	}
	b := list[t.rng.IntN(len(list))]
	r := &record{Client: t.client, Op: opEnd, Server: b.Server.ID, Binding: b.ID}
	t.call(ctx, r, func(ctx context.Context) string {
		_, err := t.reservations.EndBinding(ctx, t.staff(), b.ID, reservation.Ending{Reason: "over"})
		return lost(err)
	})
}

// state makes a server ready, mostly, or takes it out.
func (t *turns) state(ctx context.Context) {
	r := &record{Client: t.client, Op: opState, Server: t.Servers[t.rng.IntN(len(t.Servers))], State: inventory.StateReady}
	if t.rng.IntN(4) == 0 {
		r.State, r.Force = inventory.StateMaintenance, t.rng.IntN(2) == 0
	}
	t.call(ctx, r, func(ctx context.Context) string {
		_, err := t.reservations.ChangeServerState(ctx, t.staff(), reservation.StateChange{
			ServerID: r.Server, State: r.State, Reason: "round", Force: r.Force,
		})
		return lost(err)
	})
}
