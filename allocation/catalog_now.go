package allocation

import (
	"context"
	"errors"

	"allocator/identity"
)

// lookNow lets look see the organization's servers as Reserve would find them: brought up to date from the database by a
// read that begins after the call, so that what is seen is never from memory alone. The index is locked for reading
// meanwhile. Any error is a failure of the store.
func (a *Allocator) lookNow(ctx context.Context, org identity.OrganizationID, look func(known *index)) error {
	known := a.catalog.tracked(org)
	for {
		err := known.bringUp(ctx, 0, func(ctx context.Context, since Horizon) (News, error) {
			return known.news(ctx, a.store, org, since)
		})
		if err == nil {
			err = known.look(look)
		}
		if !errors.Is(err, errUnread) {
			return err
		}
		if err := a.fill(ctx, org); err != nil {
			return err
		}
	}
}

// look fails with errUnread if everything has been forgotten since it was brought up to date.
func (x *index) look(look func(known *index)) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.horizon.IsZero() {
		return errUnread
	}
	look(x)
	return nil
}
