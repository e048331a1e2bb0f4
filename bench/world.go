package bench

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres"
)

// org is the organization in whose name everything is measured.
const org = identity.OrganizationID("bench")

// tokenKeys sign hold tokens that nobody keeps.
const tokenKeys = "bench:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// world is the product over one database with one stock.
type world struct {
	admin        *pgxpool.Pool // for what is not measured
	pool         *pgxpool.Pool // shared by all contenders
	servers      *inventoryOf
	allocator    *allocation.Allocator
	reservations *reservation.Service
	caller       identity.Caller
	seed         uint64
	duration     time.Duration // of one turn
	lockSpace    string        // before keys in Redis, another one after each reset
}

// alwaysOn is the release switch: a benchmark is about reservations that are made.
type alwaysOn struct{}

// Enabled implements allocation.Switch.
func (alwaysOn) Enabled(context.Context, identity.OrganizationID) bool { return true }

// newWorld makes the schema anew, the stock in it, and the services over it.
func newWorld(ctx context.Context, admin *pgxpool.Pool, url string, n int, o *Options) (*world, error) {
	if err := fresh(ctx, admin); err != nil {
		return nil, err
	}
	if o.Statements {
		if err := watchStatements(ctx, admin); err != nil {
			return nil, err
		}
	}
	// A hold outlives any run, so that nothing expires in the middle of one.
	if _, err := admin.Exec(ctx, `INSERT INTO organizations (id, name, hold_seconds) VALUES ($1, 'Benchmark', 86400)`, org); err != nil {
		return nil, err
	}
	stock, err := newInventory(n, o.Seed)
	if err != nil {
		return nil, err
	}
	if err := stock.load(ctx, admin); err != nil {
		return nil, err
	}
	pool, err := openPool(ctx, url, o.MaxConns)
	if err != nil {
		return nil, err
	}
	return serve(&world{admin: admin, pool: pool, servers: stock, seed: o.Seed, duration: o.Duration})
}

// serve puts the services on the world's pool.
func serve(w *world) (*world, error) {
	tokens, err := reservation.ParseTokenKeys(tokenKeys)
	if err != nil {
		return nil, err
	}
	w.caller = identity.LocalCaller(org, identity.Actor{Kind: identity.ActorKey, ID: "bench"})
	w.allocator = allocation.New(postgres.NewAllocations(w.pool), alwaysOn{}, tokens)
	w.reservations = reservation.NewService(postgres.NewReservations(w.pool), tokens).WatchedBy(w.allocator.Watcher())
	return w, nil
}

func (w *world) close() { w.pool.Close() }

// reset gives back what a contender has held or sold, and leaves the tables and the log as tidy as they were, so that
// the next one begins alike. Ended rows stay: history grows, and grows for everybody.
func (w *world) reset(ctx context.Context) error {
	w.lockSpace = nextRound()
	for _, sql := range []string{
		`UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'system'
			WHERE organization_id = '` + string(org) + `' AND state = 'held'`,
		`UPDATE bindings SET ended_at = clock_timestamp(), ended_by_kind = 'system'
			WHERE organization_id = '` + string(org) + `' AND ended_at IS NULL AND service_id >= 'svc-' AND service_id < 'svc.'`,
		`VACUUM servers, reservations, bindings, occupancy`,
		`CHECKPOINT`,
	} {
		if _, err := w.admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// settle is called once after the first, uncounted round, when every table has rows.
func (w *world) settle(ctx context.Context) error {
	_, err := w.admin.Exec(ctx, `ANALYZE servers, reservations, bindings, occupancy`)
	return err
}
