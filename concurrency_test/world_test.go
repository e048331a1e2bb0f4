//go:build gates

package concurrency_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// patience bounds what a test waits for before it says that something hangs. No test asserts a time.
const patience = 30 * time.Second

// tokenKeys sign the hold tokens of every world.
const tokenKeys = "test:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// world is one organization with the services over one database of its own.
type world struct {
	t            *testing.T
	ctx          context.Context
	url          string
	pool         *pgxpool.Pool
	allocator    *allocation.Allocator
	reservations *reservation.Service
	caller       identity.Caller // may do everything
	release      *release
}

// release is the switch; a test may turn it.
type release struct {
	mu  sync.Mutex
	off bool
}

func (r *release) Enabled(context.Context, identity.OrganizationID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.off
}

func (r *release) turnOff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = true
}

const org = identity.OrganizationID("acme")

func newWorld(t *testing.T) *world {
	t.Helper()
	url := postgrestest.URL(t)
	w := &world{t: t, ctx: t.Context(), url: url, pool: postgrestest.Pool(t, url), release: &release{}}
	w.caller = identity.LocalCaller(org, identity.Actor{Kind: identity.ActorPerson, ID: "tester"})
	w.exec(`INSERT INTO organizations (id, name, hold_limit) VALUES ($1, 'Acme', 10000)`, org)
	w.serve(w.pool)
	return w
}

// serve puts the services on a pool.
func (w *world) serve(pool *pgxpool.Pool, options ...allocation.Option) {
	w.t.Helper()
	tokens, err := reservation.ParseTokenKeys(tokenKeys)
	require.NoError(w.t, err)
	options = append(catalogOptions(w.t), options...)
	w.allocator = allocation.New(postgres.NewAllocations(pool), w.release, tokens, options...)
	w.reservations = reservation.NewService(postgres.NewReservations(pool), tokens).WatchedBy(w.allocator.Watcher())
}

// catalogEnv says what the allocators of the tests remember.
const catalogEnv = "CONCURRENCY_CATALOG"

// catalogOptions say how old it may be. Tests change the inventory by raw SQL, so if nothing is said every request reads
// what is new. What is promised holds just as well with a catalog that is as old as in production, and with one that never
// looks by itself; requests walk then, as the tests expect them to: the shortcut has tests of its own.
func catalogOptions(t *testing.T) []allocation.Option {
	t.Helper()
	mode := cmp.Or(os.Getenv(catalogEnv), "off")
	options, err := catalogAge(mode)
	require.NoError(t, err)
	if mode != "off" {
		options = append(options, allocation.WalkAlways())
	}
	return options
}

// catalogAge is how old the catalog may be in a mode; where none is said, it is as in production.
func catalogAge(mode string) ([]allocation.Option, error) {
	switch mode {
	case "", "on":
		return nil, nil
	case "off":
		return []allocation.Option{allocation.MaxAge(0)}, nil
	case "stale":
		return []allocation.Option{allocation.MaxAge(time.Hour)}, nil
	default:
		return nil, fmt.Errorf("%s=%s: say on, stale or off", catalogEnv, mode)
	}
}

// searching is a pool whose sessions look for every name in the given schema first, the system's own names included.
func (w *world) searching(schema string) *pgxpool.Pool {
	w.t.Helper()
	return postgrestest.Pool(w.t, postgrestest.With(w.t, w.url, map[string]string{"search_path": schema + ", pg_catalog, public"}))
}

// fill lets the world's allocator read the inventory, so that no request of it has to begin twice.
func (w *world) fill() {
	w.t.Helper()
	_, err := w.allocator.Capacity(w.ctx, w.caller, allocation.Grouping{})
	require.NoError(w.t, err)
}

// exec runs raw SQL that must succeed.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.pool.Exec(w.ctx, sql, args...)
	require.NoError(w.t, err)
}

// one reads one value.
func one[T any](w *world, sql string, args ...any) T {
	w.t.Helper()
	var value T
	require.NoError(w.t, w.pool.QueryRow(w.ctx, sql, args...).Scan(&value))
	return value
}

// servers adds n equal ready servers and returns their ids.
func (w *world) servers(n int) []uuid.UUID {
	w.t.Helper()
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = w.server(64 * 1024)
	}
	return ids
}

// server adds one ready server with that much memory; less memory ranks first.
func (w *world) server(mib int) uuid.UUID {
	w.t.Helper()
	id := uuid.Must(uuid.NewV7())
	w.exec(`INSERT INTO servers (organization_id, id, source, external_id, name, site, memory_mib, state)
		VALUES ($1, $2, 'test', $3, $3, 'FSN1', $4, 'ready')`, org, id, id.String(), mib)
	return id
}

// request asks for any server under a key and order of their own.
func request(name string) allocation.Request {
	return allocation.Request{
		IdempotencyKey: "key-" + name,
		Order:          reservation.OrderLine{OrderID: "order-" + name, Line: "1", Unit: 1},
	}
}

// reserve must not fail; it may be refused.
func (w *world) reserve(ctx context.Context, req allocation.Request) *allocation.Outcome {
	w.t.Helper()
	outcome, err := w.allocator.Reserve(ctx, w.caller, req)
	require.NoError(w.t, err)
	return outcome
}

// held reserves and must succeed.
func (w *world) held(name string) *allocation.Outcome {
	w.t.Helper()
	outcome := w.reserve(w.ctx, request(name))
	require.Equal(w.t, allocation.OutcomeReserved, outcome.Code, "%+v", outcome.Decision)
	return outcome
}

// together runs n functions at once and waits for all of them.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}

// tally counts outcomes as "reserved", "contended/scan_limit" and so on.
func tally(outcomes []*allocation.Outcome) map[string]int {
	counts := map[string]int{}
	for _, o := range outcomes {
		name := string(o.Code)
		if o.Refused() && o.Decision.Cause != "" {
			name += "/" + string(o.Decision.Cause)
		}
		counts[name]++
	}
	return counts
}

// expire lets a held reservation's deadline pass.
func (w *world) expire(id reservation.ID) {
	w.t.Helper()
	w.exec(`UPDATE reservations SET expires_at = clock_timestamp() - interval '1 second' WHERE id = $1`, rawID(string(id)))
}

// rawID is the uuid in an id.
func rawID(id string) uuid.UUID { return uuid.MustParse(id[strings.IndexByte(id, '_')+1:]) }

func serverID(id uuid.UUID) inventory.ServerID {
	return inventory.ServerID("srv_" + strings.ReplaceAll(id.String(), "-", ""))
}

// sound checks every invariant, but for the named ones that a test broke on purpose by raw SQL.
func (w *world) sound(but ...string) {
	w.t.Helper()
	for name, sql := range invariants {
		if slices.Contains(but, name) {
			continue
		}
		rows, err := w.pool.Query(w.ctx, sql)
		require.NoError(w.t, err, name)
		var broken []string
		for rows.Next() {
			var row *string
			require.NoError(w.t, rows.Scan(&row))
			broken = append(broken, fmt.Sprint(*row))
		}
		require.NoError(w.t, rows.Err(), name)
		require.Empty(w.t, broken, name)
	}
}
