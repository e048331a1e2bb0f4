package httpapi_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/events"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/inventory"
	"allocator/lease"
	"allocator/locking"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
	"allocator/transport/httpapi"
)

const testTokenKeys = "test:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// world is a door over a database of its own, with two organizations, "acme" and "rival", whose switch is on.
type world struct {
	t      testing.TB
	pool   *pgxpool.Pool
	server *httptest.Server
	door   *httpapi.Server
	keys   *identity.Keys
	flags  *featureflags.Flags
	jobs   *testJobs
	log    *lockedBuffer
	spec   *contract

	editors *lease.Hub

	mu     sync.Mutex
	bearer map[string]string // by organization and scopes
	count  int
}

// release asks the switch as cmd/allocator does.
type release struct{ *featureflags.Switch }

func (r release) Enabled(ctx context.Context, org identity.OrganizationID) bool {
	return r.Switch.Enabled(ctx, string(org))
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	pool := postgrestest.New(tb)
	return newWorldOn(tb, pool, postgres.NewHealth(pool))
}

func newWorldOn(tb testing.TB, pool *pgxpool.Pool, ready httpapi.Readiness) *world {
	tb.Helper()
	w := &world{t: tb, pool: pool, log: &lockedBuffer{}, bearer: map[string]string{}}
	tokens, err := reservation.ParseTokenKeys(testTokenKeys)
	require.NoError(tb, err)
	w.flags = featureflags.New(postgres.NewFlags(pool))
	sw, err := featureflags.NewSwitch(tb.Context(), featureflags.NewProvider(w.flags))
	require.NoError(tb, err)
	allocator := allocation.New(postgres.NewAllocations(pool), release{sw}, tokens, allocation.NotingEdits(postgres.NewUnderEdit(pool)))
	reservations := reservation.NewService(postgres.NewReservations(pool), tokens).WatchedBy(allocator.Watcher())
	organizations := identity.NewOrganizations(postgres.NewOrganizations(pool), time.Second)
	w.keys = identity.NewKeys(postgres.NewKeys(pool), time.Now)
	audit := events.NewAudit(postgres.NewAudit(pool), time.Now)
	w.jobs = newTestJobs(tb)
	leaseStore := postgres.NewLeases(pool)
	w.editors = lease.NewHub(leaseStore, slog.New(slog.DiscardHandler))
	w.watch()
	w.door, err = httpapi.New(httpapi.Deps{
		Authenticator: w.keys, Attempts: audit, Ready: ready,
		Reserver: allocator, Evaluator: allocator, Capacity: allocator, Decisions: allocator,
		Reservations: reservations, ReservationChanges: reservations, Bindings: reservations, ServerStates: reservations,
		Servers: inventory.NewService(postgres.NewServers(pool)), Events: postgres.NewEvents(pool),
		Locks: locking.NewGrants(postgres.NewLocks(pool)), Jobs: w.jobs,
		Leases:        lease.NewService(leaseStore, postgres.NewLeasePolicy(pool), lease.ReadPresenceBy(postgres.NewLeasePresence(pool))),
		LeaseWatch:    w.editors,
		Organizations: organizations, Keys: w.keys, Flags: w.flags, Audit: audit,
		Log: slog.New(slog.NewJSONHandler(w.log, nil)), Version: "1.2.3-test",
	})
	require.NoError(tb, err)
	w.server = httptest.NewServer(w.door.Handler())
	tb.Cleanup(w.server.Close)
	for _, id := range []identity.OrganizationID{"acme", "rival"} {
		by := identity.LocalCaller(id, identity.Actor{Kind: identity.ActorSystem, ID: "test"})
		_, err := organizations.Create(tb.Context(), by, identity.NewOrganization{ID: id, Name: string(id)})
		require.NoError(tb, err)
	}
	w.turn("acme", true)
	w.turn("rival", true)
	w.spec = loadSpec(tb, w.get("", "/openapi.json").body)
	return w
}

// watch lets those who watch leases be told, as a running service does.
func (w *world) watch() {
	ctx, stop := context.WithCancel(w.t.Context())
	var done sync.WaitGroup
	done.Go(func() { w.editors.Run(ctx) })
	done.Go(func() { postgres.ListenLeases(ctx, w.pool, w.editors, false, slog.New(slog.DiscardHandler)) })
	w.t.Cleanup(func() { stop(); done.Wait() })
}

// turn sets the release switch of an organization.
func (w *world) turn(org string, on bool) {
	w.t.Helper()
	require.NoError(w.t, w.flags.SetOverride(w.t.Context(), featureflags.By{ActorKind: "system"}, featureflags.Reservations, org, on))
}

// key returns a key of the organization with these scopes, such as "acme:checkout,support".
func (w *world) key(who string) string {
	w.t.Helper()
	if who == "" {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bearer[who] == "" {
		org, names, _ := strings.Cut(who, ":")
		scopes := identity.Scopes()
		if names != "all" {
			scopes = nil
			for name := range strings.SplitSeq(names, ",") {
				scopes = append(scopes, identity.Scope(name))
			}
		}
		by := identity.LocalCaller(identity.OrganizationID(org), identity.Actor{Kind: identity.ActorSystem, ID: "test"})
		_, text, err := w.keys.Create(w.t.Context(), by, identity.NewKey{Name: who, Scopes: scopes})
		require.NoError(w.t, err)
		w.bearer[who] = text
	}
	return w.bearer[who]
}

// exec runs raw SQL that must succeed.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.pool.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

// next returns a number that no other call of this world got.
func (w *world) next() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	return w.count
}
