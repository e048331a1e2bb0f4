//go:build gates

package concurrency_test

import (
	"context"
	"errors"
	"fmt"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// reserveAct asks for any server; change makes the request another than its name says.
func reserveAct(order string, change func(*allocation.Request)) act {
	return act{"reserve " + order, func(ctx context.Context, p *play, l *lane) string {
		req := request(order)
		if change != nil {
			change(&req)
		}
		return reserveWord(l.allocator.Reserve(ctx, p.staff, req))
	}}
}

// reserveWord is the answer to a request in a word: the cause of a refusal, or the kind of outcome.
func reserveWord(o *allocation.Outcome, err error) string {
	switch {
	case err != nil:
		return word(err)
	case o.Refused() && o.Decision.Cause != "":
		return string(o.Decision.Cause)
	default:
		return string(o.Code)
	}
}

// anotherKey asks for the same order line by another key.
func anotherKey(req *allocation.Request) { req.IdempotencyKey += " again" }

// checkout is the buyer of order a, who has to show the token of the hold.
func (p *play) checkout() identity.Caller {
	return identity.Caller{
		Organization: p.org, Scopes: identity.NewScopeSet(identity.ScopeCheckout),
		Actor: identity.Actor{Kind: identity.ActorKey, ID: "key_checkout"},
	}
}

var renewAct = act{"renew", func(ctx context.Context, p *play, l *lane) string {
	_, err := l.reservations.Renew(ctx, p.checkout(), p.hold.Reservation.ID, p.hold.HoldToken)
	return word(err)
}}

var cancelAct = act{"cancel", func(ctx context.Context, p *play, l *lane) string {
	r, err := l.reservations.Cancel(ctx, p.checkout(), p.hold.Reservation.ID, p.hold.HoldToken, reservation.Cancellation{Reason: reservation.CancelOther})
	if err != nil {
		return word(err)
	}
	return string(r.State)
}}

func sellAct(service string) act {
	return act{"convert", func(ctx context.Context, p *play, l *lane) string {
		c, err := l.reservations.Convert(ctx, p.staff, p.hold.Reservation.ID, "", service)
		if err == nil && c.Repeated {
			return "repeated"
		}
		return word(err)
	}}
}

var takeOverAct = act{"take over", func(ctx context.Context, p *play, l *lane) string {
	_, err := l.reservations.TakeOver(ctx, p.staff, p.hold.Reservation.ID, "customer on the phone")
	return word(err)
}}

var sweepAct = act{"sweep", func(ctx context.Context, _ *play, l *lane) string {
	swept, err := l.reservations.Sweep(ctx, batch)
	if err != nil {
		return word(err)
	}
	return fmt.Sprint(swept.Expired)
}}

func stateAct(state inventory.State, force bool) act {
	return act{string(state), func(ctx context.Context, p *play, l *lane) string {
		_, err := l.reservations.ChangeServerState(ctx, p.staff, reservation.StateChange{
			ServerID: serverID(p.server), State: state, Reason: "fan", Force: force,
		})
		return word(err)
	}}
}

var (
	maintain = stateAct(inventory.StateMaintenance, false)
	force    = stateAct(inventory.StateMaintenance, true)
	fail     = stateAct(inventory.StateFailed, true)
)

var bindAct = act{"bind directly", func(ctx context.Context, p *play, l *lane) string {
	_, err := l.reservations.BindDirectly(ctx, p.staff, reservation.DirectBinding{ServerID: serverID(p.server), ServiceID: "old", Reason: "sold before"})
	return word(err)
}}

var endAct = act{"end", func(ctx context.Context, p *play, l *lane) string {
	_, err := l.reservations.EndBinding(ctx, p.staff, p.binding, reservation.Ending{Reason: "left"})
	return word(err)
}}

// buyAct reserves and converts at once.
func buyAct(order string) act {
	return act{"buy " + order, func(ctx context.Context, p *play, l *lane) string {
		o, err := l.allocator.Reserve(ctx, p.staff, request(order))
		if err != nil || o.Refused() {
			return reserveWord(o, err)
		}
		_, err = l.reservations.Convert(ctx, p.staff, o.Reservation.ID, "", "service "+order)
		return word(err)
	}}
}

// deadlineAct is the deadline of order a's hold, which passes at some moment.
var deadlineAct = act{"deadline", func(_ context.Context, p *play, _ *lane) string {
	p.setClock(p.hold.Reservation.ExpiresAt)
	return "passed"
}}

// word is an answer in a word; one that is not foreseen stays a sentence, which is legal nowhere.
func word(err error) string {
	var converted *reservation.AlreadyConvertedError
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, reservation.ErrExpired):
		return "expired"
	case errors.Is(err, reservation.ErrCancelled):
		return "cancelled"
	case errors.Is(err, reservation.ErrNotHolder):
		return "not holder"
	case errors.Is(err, reservation.ErrServerInUse):
		return "in use"
	case errors.Is(err, reservation.ErrRenewalLimit):
		return "renewal limit"
	case errors.Is(err, reservation.ErrServiceAlreadyBound):
		return "service bound"
	case errors.As(err, &converted):
		return "converted"
	default:
		return err.Error()
	}
}
