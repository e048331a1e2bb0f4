package bench

import (
	"context"
	"fmt"

	"allocator/lease"
	"allocator/store/postgres"
)

// presenceLeases is how many people edit the resource whose presence is read.
const presenceLeases = 100

// everybody may edit everything.
type everybody struct{}

// MayEdit implements lease.Policy.
func (everybody) MayEdit(context.Context, lease.Writer, lease.Key) (bool, error) { return true, nil }

// MayTakeOver implements lease.Policy.
func (everybody) MayTakeOver(lease.Writer, lease.Lease) bool { return true }

// comparePresence reads who edits a resource beside SELECT 1 on the same pool.
func (r *run) comparePresence(ctx context.Context, w *world, table Table) error {
	leases := lease.NewService(postgres.NewLeases(w.pool), everybody{})
	writer := lease.Writer{Organization: string(org), ActorKind: string(w.caller.Actor.Kind), ActorID: w.caller.Actor.ID}
	for i := range presenceLeases {
		writer.Holder = lease.Holder{ID: fmt.Sprint("editor-", i), Name: fmt.Sprint("Editor ", i)}
		// A lease that runs out meanwhile would be seen as a refusal.
		key := lease.Key{Resource: "rack:bench", Part: fmt.Sprint("u", i)}
		if _, err := leases.Acquire(ctx, writer, key, lease.MaxSeconds); err != nil {
			return fmt.Errorf("take a lease: %w", err)
		}
	}
	return r.compareAll(ctx, w, table,
		inProcess("select-1-pool", (*world).selectOne),
		inProcess("presence", func(*world) *contender {
			return &contender{
				name:    "presence",
				prepare: func(context.Context, string) error { return nil },
				do: func(ctx context.Context, _ int) (bool, error) {
					seen, err := leases.Presence(ctx, writer, "rack:bench")
					return err == nil && len(seen.Leases) == presenceLeases, err
				},
			}
		}))
}

func (w *world) selectOne() *contender {
	return &contender{
		name:    "select-1-pool",
		prepare: func(context.Context, string) error { return nil },
		do: func(ctx context.Context, _ int) (bool, error) {
			var one int
			err := w.pool.QueryRow(ctx, `SELECT 1`).Scan(&one)
			return err == nil, err
		},
	}
}
