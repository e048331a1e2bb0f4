package redisport

import (
	"errors"

	"allocator/identity"
	"allocator/locking"
	"allocator/reservation"
)

// lookAtHold tells the state of a reservation, never its token. What is left is asked of the database's clock in the same
// question, so that a payment screen counts down to the instant at which it is over.
func lookAtHold(c *call, name string) (*entry, error) {
	now, err := c.door.deps.Countdowns.Countdown(c.ctx, c.session.caller.Organization, reservation.ID(name))
	if errors.Is(err, reservation.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &entry{value: string(now.State), left: now.Left, ends: now.State.Holds()}, nil
}

// lookAtReason is why this server was chosen, as it was frozen then.
func lookAtReason(c *call, name string) (*entry, error) {
	r, err := c.door.deps.Reservations.Reservation(c.ctx, c.session.caller, reservation.ID(name))
	if errors.Is(err, reservation.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &entry{value: string(r.Reason)}, nil
}

// cancelHold is DELEX hold:<reservation> IFEQ <hold token>: 1 if the hold is cancelled, also by an earlier one; 0 if the
// token is not, or no longer, that of the hold, or if there is nothing left to cancel.
func (c *call) cancelHold(name string, match locking.Match) {
	switch {
	case match.Token == nil:
		c.err("ERR a hold is cancelled by its token alone: DELEX key IFEQ <hold token>")
		return
	case !c.may(identity.ScopeCheckout, identity.ScopeSupport):
		return
	case *match.Token == "": // staff may leave the token out over HTTP; here it is what is compared
		c.integer(0)
		return
	}
	cancelled, err := c.door.deps.Reservations.Cancel(c.ctx, c.caller(), reservation.ID(name), *match.Token,
		reservation.Cancellation{Reason: reservation.CancelOther})
	_, converted := errors.AsType[*reservation.AlreadyConvertedError](err)
	switch {
	case errors.Is(err, reservation.ErrNotFound), errors.Is(err, reservation.ErrNotHolder), converted:
		c.integer(0)
	case err != nil:
		c.fail(err)
	default:
		c.count(cancelled.State == reservation.StateCancelled, nil)
	}
}
