package reservation

import (
	"context"

	"allocator/events"
	"allocator/identity"
	"allocator/inventory"
)

// ChangeServerState moves a server to another state. It lives here and not in package inventory because what holds the
// server decides whether it may. A held or bound server is refused with ErrServerInUse; with Force the reservation is
// cancelled in the caller's name, its reason kept, while a bound server stays bound and is flagged by its state. Asking
// for the state that the server has changes nothing. With change.Lock nothing is done for a holder that lost its lock:
// the fence is looked at when the server is locked, since waiting for that is time in which the lock can be lost. Errors:
// ErrNotFound, ErrServerInUse, ErrStaleFence, and for an editor those of its lease.
func (s *Service) ChangeServerState(ctx context.Context, caller identity.Caller, change StateChange) (*inventory.Server, error) {
	change.By = caller.Actor
	var changed *inventory.Server
	var refusal error
	err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		occupied, err := tx.LockServer(ctx, caller.Organization, change.ServerID)
		if err != nil {
			return err
		}
		changed, refusal = occupied.Server, checkFence(ctx, tx, caller, change.Lock)
		switch {
		case refusal != nil:
			return unlessRefusal(refusal)
		case occupied.Server.State == change.State:
			return nil
		case !occupied.Free() && !change.Force:
			refusal = ErrServerInUse
			return nil
		}
		if err := giveUpHold(ctx, tx, caller, occupied.HeldBy, change); err != nil {
			return err
		}
		if changed, err = tx.SetServerState(ctx, caller.Organization, change); err != nil {
			return err
		}
		audit(tx, caller, events.ActionServerStateChanged, string(change.ServerID), map[string]string{
			"from": string(occupied.Server.State), "to": string(change.State), "reason": change.Reason,
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.watcher.ServersChanged(caller.Organization)
	return changed, refusal
}

// checkFence holds the proof of a lock, if one is given.
func checkFence(ctx context.Context, tx Tx, caller identity.Caller, proof LockProof) error {
	if proof == (LockProof{}) {
		return nil
	}
	return tx.CheckFence(ctx, caller.Organization, proof)
}

// giveUpHold cancels the reservation that stands in the way of a forced change of state.
func giveUpHold(ctx context.Context, tx Tx, caller identity.Caller, held ID, change StateChange) error {
	if held == "" {
		return nil
	}
	r, err := tx.LockReservation(ctx, caller.Organization, held)
	if err != nil || r.State != StateHeld {
		return err
	}
	return cancelHeld(ctx, tx, caller, r, Cancellation{Reason: CancelStaff, Text: change.Reason, By: caller.Actor})
}
