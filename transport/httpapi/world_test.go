package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
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
	log    *lockedBuffer
	spec   *contract

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
	allocator := allocation.New(postgres.NewAllocations(pool), release{sw}, tokens)
	reservations := reservation.NewService(postgres.NewReservations(pool), tokens).WatchedBy(allocator.Watcher())
	organizations := identity.NewOrganizations(postgres.NewOrganizations(pool), time.Second)
	w.keys = identity.NewKeys(postgres.NewKeys(pool), time.Now)
	audit := events.NewAudit(postgres.NewAudit(pool), time.Now)
	w.door, err = httpapi.New(httpapi.Deps{
		Authenticator: w.keys, Attempts: audit, Ready: ready,
		Reserver: allocator, Evaluator: allocator, Decisions: allocator,
		Reservations: reservations, ReservationChanges: reservations, Bindings: reservations, ServerStates: reservations,
		Servers: inventory.NewService(postgres.NewServers(pool)), Events: postgres.NewEvents(pool),
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

// call is one request.
type call struct {
	who, method, path, body string
	header                  http.Header
}

// answer is what came back, read to the end.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do sends a request and holds the answer against the contract.
func (w *world) do(c call) *answer {
	w.t.Helper()
	a := w.raw(c)
	if w.spec != nil {
		w.spec.hold(w.t, c.method, c.path, a)
	}
	return a
}

func (w *world) raw(c call) *answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), c.method, w.server.URL+c.path, strings.NewReader(c.body))
	require.NoError(w.t, err)
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key := w.key(c.who); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	maps.Copy(r.Header, c.header)
	res, err := w.server.Client().Do(r)
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, res.Body.Close()) }()
	body, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	return &answer{t: w.t, status: res.StatusCode, header: res.Header, body: body}
}

func (w *world) get(who, path string) *answer {
	w.t.Helper()
	return w.do(call{who: who, method: "GET", path: path})
}

func (w *world) post(who, path, body string, headers ...string) *answer {
	w.t.Helper()
	return w.do(call{who: who, method: "POST", path: path, body: body, header: headersOf(headers...)})
}

// headersOf makes a header of names and values in turn.
func headersOf(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// is demands a status and, for an error, its code.
func (a *answer) is(status int, code string) *answer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	if code != "" {
		require.Equal(a.t, code, a.text("code"), "%s", a.body)
	}
	return a
}

// json reads the answer.
func (a *answer) json() map[string]any {
	a.t.Helper()
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.UseNumber()
	require.NoError(a.t, decoder.Decode(&tree), "%s", a.body)
	return tree
}

// at follows a path such as "server.id" or "items.0.id"; nil if there is nothing.
func (a *answer) at(path string) any {
	a.t.Helper()
	var node any = a.json()
	for step := range strings.SplitSeq(path, ".") {
		switch n := node.(type) {
		case map[string]any:
			node = n[step]
		case []any:
			var i int
			_, err := fmt.Sscanf(step, "%d", &i)
			require.NoError(a.t, err)
			if i >= len(n) {
				return nil
			}
			node = n[i]
		default:
			return nil
		}
	}
	return node
}

// text is at, as text; empty if there is nothing.
func (a *answer) text(path string) string {
	a.t.Helper()
	if value := a.at(path); value != nil {
		return fmt.Sprint(value)
	}
	return ""
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

// lockedBuffer is a log that handlers write while a test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// records reads the log, one JSON object a line.
func (b *lockedBuffer) records(tb testing.TB) []map[string]any {
	tb.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []map[string]any
	for line := range strings.SplitSeq(strings.TrimSpace(b.buf.String()), "\n") {
		var record map[string]any
		require.NoError(tb, json.Unmarshal([]byte(line), &record), line)
		all = append(all, record)
	}
	return all
}
