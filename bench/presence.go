package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/lease"
	"allocator/store/postgres"
)

// presenceLeases is how many people edit the resource whose presence is read.
const presenceLeases = 100

// leaseService is as the product has it.
func leaseService(pool *pgxpool.Pool) *lease.Service {
	return lease.NewService(postgres.NewLeases(pool), postgres.NewLeasePolicy(pool), lease.ReadPresenceBy(postgres.NewLeasePresence(pool)))
}

// comparePresence reads who edits a resource beside SELECT 1 through the same kind of door.
func (r *run) comparePresence(ctx context.Context, w *world, table Table) error {
	leases := leaseService(w.pool)
	writer := lease.Writer{Organization: string(org), ActorKind: string(w.caller.Actor.Kind), ActorID: w.caller.Actor.ID}
	for i := range presenceLeases {
		writer.Holder = lease.Holder{ID: fmt.Sprint("editor-", i), Name: fmt.Sprint("Editor ", i)}
		// A lease that runs out meanwhile would be seen as a refusal.
		key := lease.Key{Resource: "rack:bench", Part: fmt.Sprint("u", i)}
		if _, err := leases.Acquire(ctx, writer, key, lease.MaxSeconds); err != nil {
			return fmt.Errorf("take a lease: %w", err)
		}
	}
	return r.besideSelectOne(ctx, w, table, "presence", "/v1/leases/rack:bench")
}
