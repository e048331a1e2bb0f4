package reservation

import (
	"context"

	"allocator/events"
	"allocator/identity"
	"allocator/inventory"
)

// Binding returns one binding of the caller's organization, or ErrNotFound.
func (s *Service) Binding(ctx context.Context, caller identity.Caller, id BindingID) (*Binding, error) {
	return s.store.Binding(ctx, caller.Organization, id)
}

// Bindings lists the organization's bindings, newest first.
func (s *Service) Bindings(ctx context.Context, caller identity.Caller, filter BindingFilter) ([]*Binding, error) {
	return s.store.Bindings(ctx, caller.Organization, filter)
}

// BindDirectly records a server that was sold before Allocator came, so that it is not sold again. Errors:
// ErrNotFound, ErrServerInUse, ErrServiceAlreadyBound.
func (s *Service) BindDirectly(ctx context.Context, caller identity.Caller, bind DirectBinding) (*Binding, error) {
	bind.By = caller.Actor
	var made *Binding
	err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		server, err := tx.LockServer(ctx, caller.Organization, bind.ServerID)
		if err != nil {
			return err
		}
		if !server.Free() {
			return ErrServerInUse
		}
		if made, err = tx.BindDirectly(ctx, caller.Organization, bind); err != nil {
			return err
		}
		audit(tx, caller, events.ActionBindingCreated, string(made.ID),
			map[string]string{"server": string(bind.ServerID), "service_id": bind.ServiceID, "reason": bind.Reason})
		return nil
	})
	if err == nil {
		s.watcher.BindingChanged(made)
	}
	return made, err
}

// EndBinding ends a binding: its server goes to cleaning, or to failed when the delivery is reported as failed, and an
// operator marks it ready again. Ending an ended binding returns it as it is. Errors: ErrNotFound.
func (s *Service) EndBinding(ctx context.Context, caller identity.Caller, id BindingID, end Ending) (*Binding, error) {
	end.By = caller.Actor
	var ended *Binding
	err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		b, err := tx.LockBinding(ctx, caller.Organization, id)
		if err != nil {
			return err
		}
		ended = b
		if !b.Active() {
			return nil
		}
		if err := tx.EndBinding(ctx, b, end); err != nil {
			return err
		}
		audit(tx, caller, events.ActionBindingEnded, string(b.ID),
			map[string]string{"reason": end.Reason, "server_state": string(end.StateAfter())})
		return nil
	})
	if err == nil {
		s.watcher.BindingChanged(ended)
	}
	return ended, err
}

// StateAfter returns the state in which the end of a binding leaves its server.
func (e Ending) StateAfter() inventory.State {
	if e.DeliveryFailed {
		return inventory.StateFailed
	}
	return inventory.StateCleaning
}
