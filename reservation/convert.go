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
func (s *Service) Convert(ctx context.Context, caller identity.Caller, id ID, token, serviceID string) (*Conversion, error) {
	var result Conversion
	r, err := s.change(ctx, caller, id, token, func(ctx context.Context, tx Tx, r *Reservation) error {
		result = Conversion{}
		if r.State == StateConverted && r.ServiceID == serviceID {
			result.Repeated = true
			return nil
		}
		binding, err := convert(ctx, tx, caller, r, serviceID)
		result.Binding = binding
		return err
	})
	if err != nil {
		return nil, err
	}
	result.Reservation = r
	if result.Binding != nil {
		s.watcher.BindingChanged(result.Binding)
	}
	if result.Repeated {
		result.Binding, err = s.store.Binding(ctx, caller.Organization, r.BindingID)
	}
	return &result, err
}

// convert writes the binding, or the durable event for support when somebody may have paid for a hold that was gone.
func convert(ctx context.Context, tx Tx, caller identity.Caller, r *Reservation, serviceID string) (*Binding, error) {
	refusal := mustBeHeld(r)
	if refusal == nil {
		var binding *Binding
		if binding, refusal = tx.Convert(ctx, r, serviceID, caller.Actor); refusal == nil {
			audit(tx, caller, events.ActionReservationConverted, string(r.ID),
				map[string]string{"service_id": serviceID, "binding": string(binding.ID)})
			return binding, nil
		}
	}
	if errors.Is(refusal, ErrExpired) || errors.Is(refusal, ErrCancelled) {
		if err := tx.RecordRefusedConversion(ctx, r, serviceID, refusal.Error(), caller.Actor); err != nil {
			return nil, err
		}
	}
	return nil, refusal
}
