package lease

import "context"

// Policy decides who may edit what. It is asked anew each time, so that a right that was lost ends at the next heartbeat
// and at the next block that is saved. Its errors are failures, never a no.
type Policy interface {
	// MayEdit is asked when a lease is acquired, taken over or kept, and when the presence is read through a door. It may
	// look at a database; no transaction is open then.
	MayEdit(ctx context.Context, w Writer, key Key) (bool, error)
	// MayTakeOver is asked for every active lease that a take-over would remove, inside the claim's transaction: it answers
	// from what it is given.
	MayTakeOver(w Writer, from Lease) bool
}

// mayEdit turns a no of the policy into ErrEditRefused.
func (s *Service) mayEdit(ctx context.Context, w Writer, key Key) error {
	may, err := s.policy.MayEdit(ctx, w, key)
	if err == nil && !may {
		return ErrEditRefused
	}
	return err
}
