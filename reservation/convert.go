package reservation

import (
	"context"
	"errors"

	"allocator/events"
	"allocator/identity"
)

// Conversion is what a conversion came to.
type Conversion struct {
	Binding     *Binding
	Reservation *Reservation
	Repeated    bool // the same conversion had been made before
}

// Convert sells the held server to a service: the binding is written and the reservation moved to StateConverted in
// one transaction, so that at no instant another order can see the server free. Repeating it for the same service
// returns the same binding. Errors: ErrNotFound, ErrNotHolder, ErrExpired, ErrCancelled, AlreadyConvertedError (for
// another service), ErrServiceAlreadyBound.
//
// It travels in one round trip, and looks at the reservation only when something stood in the way. The store judges
// everything but the token, whose secret is this process's: a good token tells its generation, and the store asks for that.
func (s *Service) Convert(ctx context.Context, caller identity.Caller, id ID, token, serviceID string) (*Conversion, error) {
	p := promotion(caller, id, serviceID)
	anyGeneration := mayGoWithoutToken(caller, token)
	if !anyGeneration {
		p.Generation = s.tokens.Generation(token, caller.Organization, id)
	}
	for { // twice at the most: a token is good for one generation, and what is not held any more will not be again
		if anyGeneration || p.Generation != 0 {
			if sold, err := s.sell(ctx, p); sold != nil || err != nil {
				return sold, err
			}
		}
		repeated, generation, err := s.whyNotSold(ctx, caller, token, p)
		if repeated != nil || err != nil {
			return repeated, err
		}
		if !anyGeneration {
			p.Generation = generation
		}
	}
}

func promotion(caller identity.Caller, id ID, serviceID string) Promotion {
	return Promotion{
		Organization: caller.Organization, Reservation: id, ServiceID: serviceID, By: caller.Actor,
		Audit: func(made BindingID) events.AuditEntry {
			return auditEntry(caller, events.ActionReservationConverted, string(id),
				map[string]string{"service_id": serviceID, "binding": string(made)})
		},
	}
}

// sell writes the binding and moves the reservation, if nothing stands in the way.
func (s *Service) sell(ctx context.Context, p Promotion) (*Conversion, error) {
	sold, err := s.store.Convert(ctx, p)
	if err != nil || sold == nil {
		return nil, err
	}
	s.watcher.ReservationChanged(sold.Reservation)
	s.watcher.BindingChanged(sold.Binding)
	return sold, nil
}

// whyNotSold finds out under the locks why nothing was sold: the conversion that it repeats, or the refusal. If there is
// no reason any more, it returns the generation for which the caller may sell.
func (s *Service) whyNotSold(
	ctx context.Context, caller identity.Caller, token string, p Promotion,
) (repeated *Conversion, generation int64, err error) {
	r, err := s.change(ctx, caller, p.Reservation, token, func(ctx context.Context, tx Tx, r *Reservation) error {
		if r.State == StateConverted && r.ServiceID == p.ServiceID {
			return nil
		}
		refusal := mustBeHeld(r)
		if errors.Is(refusal, ErrExpired) || errors.Is(refusal, ErrCancelled) { // somebody may have paid for it
			if err := tx.RecordRefusedConversion(ctx, r, p.ServiceID, refusal.Error(), p.By); err != nil {
				return err
			}
		}
		return refusal
	})
	switch {
	case err != nil:
		return nil, 0, err
	case r.State == StateHeld:
		return nil, r.Generation, nil
	}
	binding, err := s.store.Binding(ctx, caller.Organization, r.BindingID)
	return &Conversion{Binding: binding, Reservation: r, Repeated: true}, 0, err
}
