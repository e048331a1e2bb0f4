package reservation

import (
	"context"
	"errors"

	"allocator/events"
	"allocator/identity"
)

// Service is what people and programs do with a reservation after it was made. Safe for concurrent use.
type Service struct {
	store   Store
	tokens  TokenKeys
	watcher Watcher
}

// NewService returns the service over a store and the keys of the hold tokens.
func NewService(store Store, tokens TokenKeys) *Service {
	return &Service{store: store, tokens: tokens, watcher: nobody{}}
}

// WatchedBy returns the same service, whose commits the watcher is told.
func (s *Service) WatchedBy(watcher Watcher) *Service {
	return &Service{store: s.store, tokens: s.tokens, watcher: watcher}
}

// Reservation returns one reservation of the caller's organization, or ErrNotFound.
func (s *Service) Reservation(ctx context.Context, caller identity.Caller, id ID) (*Reservation, error) {
	return s.store.Reservation(ctx, caller.Organization, id)
}

// Reservations lists the organization's reservations, newest first.
func (s *Service) Reservations(ctx context.Context, caller identity.Caller, filter Filter) ([]*Reservation, error) {
	return s.store.Reservations(ctx, caller.Organization, filter)
}

// HoldToken returns the token that proves who holds r, for the caller that made it or takes it over.
func (s *Service) HoldToken(r *Reservation) string {
	return s.tokens.Token(r.TokenKey, r.Organization, r.ID, r.Generation)
}

// Renew moves the deadline to now plus the hold time. Errors: ErrNotFound, ErrNotHolder, ErrExpired, ErrCancelled,
// AlreadyConvertedError, ErrRenewalLimit.
func (s *Service) Renew(ctx context.Context, caller identity.Caller, id ID, token string) (*Reservation, error) {
	return s.change(ctx, caller, id, token, func(ctx context.Context, tx Tx, r *Reservation) error {
		if err := mustBeHeld(r); err != nil {
			return err
		}
		return tx.Renew(ctx, r, caller.Actor)
	})
}

// Cancel gives the reservation up. After the deadline the answer is the expired reservation, after a cancellation the
// cancelled one, both without an error: what the caller wanted is so. Errors: ErrNotFound, ErrNotHolder,
// AlreadyConvertedError.
func (s *Service) Cancel(ctx context.Context, caller identity.Caller, id ID, token string, cancel Cancellation) (*Reservation, error) {
	cancel.By = caller.Actor
	return s.change(ctx, caller, id, token, func(ctx context.Context, tx Tx, r *Reservation) error {
		switch r.State {
		case StateHeld:
			return cancelHeld(ctx, tx, caller, r, cancel)
		case StateConverted:
			return mustBeHeld(r)
		default:
			return nil
		}
	})
}

// cancelHeld gives up a held reservation. One whose deadline passes at this moment becomes expired, never cancelled.
func cancelHeld(ctx context.Context, tx Tx, caller identity.Caller, r *Reservation, cancel Cancellation) error {
	if err := tx.Cancel(ctx, r, cancel); err != nil {
		return err
	}
	if r.State == StateCancelled {
		audit(tx, caller, events.ActionReservationCancelled, string(r.ID),
			map[string]string{"reason_code": string(cancel.Reason), "text": cancel.Text})
	}
	return nil
}

// TakeOver hands the hold to the caller: a new token, a larger fence, and the old token dies. Errors: ErrNotFound,
// ErrExpired, ErrCancelled, AlreadyConvertedError.
func (s *Service) TakeOver(ctx context.Context, caller identity.Caller, id ID, reason string) (*Reservation, error) {
	return s.change(ctx, caller, id, "", func(ctx context.Context, tx Tx, r *Reservation) error {
		if err := mustBeHeld(r); err != nil {
			return err
		}
		if err := tx.TakeOver(ctx, r, reason, caller.Actor); err != nil {
			return err
		}
		audit(tx, caller, events.ActionReservationTakenOver, string(r.ID), map[string]string{"reason": reason})
		return nil
	})
}

// change locks the reservation, checks who asks, and runs do on it. A refusal is committed all the same: the lock has
// moved a dead hold aside, and a refused conversion has left its event.
func (s *Service) change(
	ctx context.Context, caller identity.Caller, id ID, token string,
	do func(ctx context.Context, tx Tx, r *Reservation) error,
) (*Reservation, error) {
	var changed *Reservation
	var refusal error
	err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		r, err := tx.LockReservation(ctx, caller.Organization, id)
		if err != nil {
			return err
		}
		changed = r
		if refusal = s.mayAct(caller, r, token); refusal == nil {
			refusal = do(ctx, tx, r)
		}
		return unlessRefusal(refusal)
	})
	if err != nil {
		return nil, err
	}
	s.watcher.ReservationChanged(changed)
	return changed, refusal
}

// mayAct holds the rule of who may act on a reservation: a caller that can only check out proves by the token that it
// is the holder; order completion and staff act by id and may leave the token out; one that is given must be right.
func (s *Service) mayAct(caller identity.Caller, r *Reservation, token string) error {
	if mayGoWithoutToken(caller, token) {
		return nil
	}
	if !s.tokens.Verify(token, r.Organization, r.ID, r.Generation) {
		return ErrNotHolder
	}
	return nil
}

func mayGoWithoutToken(caller identity.Caller, token string) bool {
	return token == "" && (caller.Scopes.Has(identity.ScopeOrders) || caller.Scopes.Has(identity.ScopeSupport))
}

// mustBeHeld returns the refusal that names the state which r is in instead.
func mustBeHeld(r *Reservation) error {
	switch r.State {
	case StateHeld:
		return nil
	case StateConverted:
		return &AlreadyConvertedError{Binding: r.BindingID, ServiceID: r.ServiceID}
	case StateCancelled:
		return ErrCancelled
	default:
		return ErrExpired
	}
}

// unlessRefusal is what a transaction returns that ended with err: a refusal is committed.
func unlessRefusal(err error) error {
	if isRefusal(err) {
		return nil
	}
	return err
}

// isRefusal tells an answer that leaves the transaction sound from a failure that must roll it back.
func isRefusal(err error) bool {
	var converted *AlreadyConvertedError
	return errors.Is(err, ErrExpired) || errors.Is(err, ErrCancelled) || errors.Is(err, ErrNotHolder) ||
		errors.Is(err, ErrRenewalLimit) || errors.Is(err, ErrServerInUse) ||
		errors.Is(err, ErrStaleFence) || errors.As(err, &converted)
}
