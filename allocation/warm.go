package allocation

import (
	"context"

	"allocator/identity"
)

// Warm reads an organization's inventory, so that its first request need not. It returns at once when that was done, and
// joins a read that is under way, which goes on when ctx ends. Safe for concurrent use.
func (a *Allocator) Warm(ctx context.Context, org identity.OrganizationID) error {
	if a.catalog.maxAge == 0 {
		return nil // every request reads anew
	}
	return a.fill(ctx, org)
}
