package redisport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
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
	"allocator/locking"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
	"allocator/transport/redisport"
)

// patience bounds every wait of these tests.
const patience = time.Minute

const testTokenKeys = "test:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// world is a door over a database of its own, with two organizations, "acme" and "rival", whose switch is on.
type world struct {
	t            *testing.T
	pool         *pgxpool.Pool
	addr         string
	keys         *identity.Keys
	flags        *featureflags.Flags
	allocator    *allocation.Allocator
	reservations *reservation.Service
	deps         redisport.Deps
	log          *lockedBuffer
	stop         func() // ends the door, and waits for it

	mu     sync.Mutex
	bearer map[string]string // by organization and scopes
}

// setting changes a world before it is made.
type setting func(*settings)

type settings struct {
	url    string
	pool   *pgxpool.Pool
	limits redisport.Limits
	tls    *tls.Config
	change func(*redisport.Deps)
}

func withLimits(l redisport.Limits) setting { return func(s *settings) { s.limits = l } }

func withDeps(change func(*redisport.Deps)) setting { return func(s *settings) { s.change = change } }

// withClock lets time pass when a test says so.
func withClock(t *testing.T) setting {
	t.Helper()
	url := postgrestest.ClockedURL(t)
	return func(s *settings) { s.url = url }
}

func newWorld(t *testing.T, more ...setting) *world {
	t.Helper()
	var s settings
	for _, set := range more {
		set(&s)
	}
	w := &world{t: t, pool: s.pool, log: &lockedBuffer{}, bearer: map[string]string{}}
	switch {
	case s.url != "":
		w.pool = postgrestest.Pool(t, s.url)
	case w.pool == nil:
		w.pool = postgrestest.New(t)
	}
	w.furnish()
	w.deps = redisport.Deps{
		Authenticator: w.keys, Attempts: events.NewAudit(postgres.NewAudit(w.pool), time.Now),
		Locks: locking.NewKeyspace(postgres.NewLocks(w.pool)), Countdowns: postgres.NewReservations(w.pool), Reservations: w.reservations,
		Log: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Version: "1.2.3-test",
	}
	if s.change != nil {
		s.change(&w.deps)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the door's log:\n%s", w.log.String())
		}
	})
	w.addr, w.stop = w.serve(redisport.New(w.deps, s.limits, s.tls))
	return w
}

// release asks the switch as cmd/allocator does.
type release struct{ *featureflags.Switch }

func (r release) Enabled(ctx context.Context, org identity.OrganizationID) bool {
	return r.Switch.Enabled(ctx, string(org))
}

// furnish wires the services and makes the organizations.
func (w *world) furnish() {
	t := w.t
	tokens, err := reservation.ParseTokenKeys(testTokenKeys)
	require.NoError(t, err)
	w.flags = featureflags.New(postgres.NewFlags(w.pool))
	sw, err := featureflags.NewSwitch(t.Context(), featureflags.NewProvider(w.flags))
	require.NoError(t, err)
	w.allocator = allocation.New(postgres.NewAllocations(w.pool), release{sw}, tokens)
	w.reservations = reservation.NewService(postgres.NewReservations(w.pool), tokens).WatchedBy(w.allocator.Watcher())
	w.keys = identity.NewKeys(postgres.NewKeys(w.pool), time.Now)
	organizations := identity.NewOrganizations(postgres.NewOrganizations(w.pool), time.Second)
	for _, id := range []identity.OrganizationID{"acme", "rival"} {
		_, err := organizations.Create(t.Context(), system(id), identity.NewOrganization{ID: id, Name: string(id)})
		require.NoError(t, err)
		w.turn(string(id), true)
	}
}

func system(org identity.OrganizationID) identity.Caller {
	return identity.LocalCaller(org, identity.Actor{Kind: identity.ActorSystem, ID: "test"})
}

// turn sets the release switch of an organization.
func (w *world) turn(org string, on bool) {
	w.t.Helper()
	require.NoError(w.t, w.flags.SetOverride(w.t.Context(), featureflags.By{ActorKind: "system"}, featureflags.Reservations, org, on))
}

// serve runs a door on a free port until the test ends or stop is called, which waits for it.
func (w *world) serve(door *redisport.Door) (addr string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- door.Serve(ctx, listener) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(w.t, <-ended)
		})
	}
	w.t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// key returns an API key of the organization with these scopes, such as "acme:checkout,support".
func (w *world) key(who string) string {
	w.t.Helper()
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
		_, text, err := w.keys.Create(w.t.Context(), system(identity.OrganizationID(org)), identity.NewKey{Name: who, Scopes: scopes})
		require.NoError(w.t, err)
		w.bearer[who] = text
	}
	return w.bearer[who]
}

// client connects with a key of these scopes.
func (w *world) client(who string) *wire {
	w.t.Helper()
	c := dial(w.t, w.addr)
	c.want("+OK\r\n", "AUTH", w.key(who))
	return c
}

// advance lets time pass by the database's clock.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	w.exec(`UPDATE test_clock SET now = now + $1`, d)
}

// someoneWaits returns once a session of this database waits for a lock, as the command should.
func (w *world) someoneWaits(command string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return read[bool](w, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	}, patience, 5*time.Millisecond, command)
}

// exec runs raw SQL that must succeed.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.pool.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

// read returns the one value that raw SQL gives.
func read[T any](w *world, sql string, args ...any) (value T) {
	w.t.Helper()
	require.NoError(w.t, w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&value))
	return value
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
