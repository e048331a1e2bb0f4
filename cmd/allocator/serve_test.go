package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/client"
	"allocator/store/postgres/postgrestest"
)

const testTokenKeys = "ALLOCATOR_HOLD_TOKEN_KEYS=test:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// served is a `serve` on a database of its own.
type served struct {
	*running
	url, database string
}

func serve(t *testing.T, database string, more ...string) *served {
	t.Helper()
	env := []string{testTokenKeys, "ALLOCATOR_DATABASE_URL=" + database}
	s := &served{running: start(t, env, append([]string{"serve", "--listen", "127.0.0.1:0", "--json"}, more...)...), database: database}
	var answer struct {
		URL string `json:"url"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.line()), &answer))
	s.url = answer.URL
	return s
}

// admin is the environment of a command that works on the database itself.
func (s *served) admin() []string { return []string{"ALLOCATOR_DATABASE_URL=" + s.database} }

// caller makes a key and returns the environment of a client command that uses it.
func (s *served) caller(org string, scopes string) []string {
	s.t.Helper()
	key := asked[client.CreatedKey](s.t, s.admin(), "keys", "create", "test", "--org", org, "--scope", scopes)
	return []string{"ALLOCATOR_URL=" + s.url, "ALLOCATOR_API_KEY=" + key.Key}
}

// end requires an orderly one.
func (s *served) end(signal syscall.Signal) {
	s.t.Helper()
	s.signal(signal)
	got := s.wait()
	require.Equal(s.t, exitDone, got.code, got.stderr)
}

// A service that stood still for months has this month's partitions before it answers the first request, whatever its jobs do.
func TestServeMakesTheMonthFirst(t *testing.T) {
	t.Parallel()
	database := postgrestest.URL(t)
	pool := poolOf(t, database)
	rows, err := pool.Query(t.Context(), `SELECT relname FROM pg_class WHERE relname ~ '^(events|decisions|decision_lists)_[0-9]{4}' AND relkind = 'r'`)
	require.NoError(t, err)
	months, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(months), 12)
	for _, sql := range []string{
		`DROP TABLE ` + strings.Join(months, ", "),
		`INSERT INTO river_queue (name, updated_at, paused_at) VALUES ('default', clock_timestamp(), clock_timestamp())`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	s := serve(t, database)
	var there int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_class WHERE relname = ANY ($1)`, months).Scan(&there))
	require.GreaterOrEqual(t, there, len(months)-3, "but those of a month that has just ended")
	s.end(syscall.SIGTERM)
}

func TestServeOnAnOlderSchemaNamesTheCommand(t *testing.T) {
	t.Parallel()
	database := postgrestest.EmptyURL(t)
	env := []string{testTokenKeys, "ALLOCATOR_DATABASE_URL=" + database}
	got := invoke(t, env, "serve", "--listen", "127.0.0.1:0")
	require.Equal(t, exitFailure, got.code, got.stderr)
	require.Contains(t, got.stderr, "run `allocator migrate` first")

	moved := asked[map[string]int64](t, env, "migrate")
	require.Zero(t, moved["from"])
	require.Positive(t, moved["to"])
	moved = asked[map[string]int64](t, env, "migrate")
	require.Equal(t, moved["to"], moved["from"], "nothing is left to do")
	serve(t, database).end(syscall.SIGTERM)
}

func TestServeMigrates(t *testing.T) {
	t.Parallel()
	s := serve(t, postgrestest.EmptyURL(t), "--migrate")
	s.end(syscall.SIGINT)
}

func TestServeRefusesADatabaseThatLoses(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	_, err := pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	require.NoError(t, err)
	for _, command := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"serve", "--listen", "127.0.0.1:0", "--migrate"}} {
		got := invoke(t, []string{testTokenKeys, "ALLOCATOR_DATABASE_URL=" + pool.Config().ConnString()}, command...)
		require.Equal(t, exitFailure, got.code, got.stderr)
		require.Contains(t, got.stderr, "synchronous_commit is off")
	}
}

// While a stop is under way /readyz says so, and what was begun is finished.
//
// Cases: OP-07.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	s := serve(t, postgrestest.URL(t), "--drain-delay", "1h")
	s.signal(syscall.SIGTERM)
	require.Eventually(t, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/readyz", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err, "it serves on while a load balancer looks away")
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode == http.StatusServiceUnavailable
	}, hang, poll)
	s.signal(syscall.SIGTERM)
	require.NotEqual(t, exitDone, s.wait().code, "the second signal ends it at once")
}

// Requirements: R62, R63, R66
func TestAnOrganizationFromNothingToASale(t *testing.T) {
	t.Parallel()
	s := serve(t, postgrestest.URL(t))

	// 1. An organization, its keys, a server.
	org := asked[client.Organization](t, s.admin(), "orgs", "create", "Acme Hosting", "--id", "acme", "--hold-time", "30m")
	require.Equal(t, 1800, org.HoldSeconds)
	require.Equal(t, exitConflict, invoke(t, s.admin(), "orgs", "create", "Acme", "--id", "acme").code)
	require.Equal(t, exitUsage, invoke(t, s.admin(), "orgs", "create", "Acme", "--hold-time", "5s").code)
	require.Equal(t, exitNotFound, invoke(t, s.admin(), "orgs", "show", "nobody").code)
	require.Equal(t, exitNotFound, invoke(t, s.admin(), "keys", "list", "--org", "nobody").code)
	require.Equal(t, exitUsage, invoke(t, s.admin(), "keys", "create", "k", "--org", "acme", "--scope", "everything").code)
	shop, back := s.caller("acme", "checkout"), s.caller("acme", "orders,support,operator,admin")
	addServer(t, back, "one")
	addServer(t, back, "two")

	// 2. The switch is off by default, for new reservations only; the organization's own value wins.
	require.Equal(t, exitNoServer, invoke(t, shop, "reserve", "--order", "A-0").code)
	require.Equal(t, exitNoServer, invoke(t, shop, "evaluate").code)
	asked[client.FlagOverride](t, back, "flags", "set", "reservations", "on", "--org", "acme")
	first := asked[client.Reservation](t, shop, "reserve", "--order", "A-1", "--site", "FSN1", "--wait", "1s")
	second := asked[client.Reservation](t, shop, "reserve", "--order", "A-2")
	asked[client.Flag](t, s.admin(), "flags", "set", "reservations", "100")
	asked[client.FlagOverride](t, s.admin(), "flags", "set", "reservations", "off", "--org", "acme")
	require.Eventually(t, func() bool { return invoke(t, shop, "reserve", "--order", "A-3").code == exitNoServer }, hang, poll)

	// 3. What exists goes on: renew, cancel, convert, read.
	require.Equal(t, exitNotAllowed, invoke(t, shop, "renew", first.ID).code, "a checkout proves that it is the holder")
	renewed := asked[client.Reservation](t, shop, "renew", first.ID, "--hold-token", *first.HoldToken)
	require.False(t, renewed.ExpiresAt.Before(first.ExpiresAt))
	require.Equal(t, exitNotAllowed, invoke(t, shop, "convert", first.ID, "--service", "svc-1").code)
	binding := asked[client.Binding](t, back, "convert", "A-1", "--service", "svc-1")
	require.Equal(t, first.Server.ID, binding.Server.ID)
	require.Equal(t, exitConflict, invoke(t, back, "convert", "A-1", "--service", "svc-2").code)
	cancelled := asked[client.Reservation](t, back, "cancel", "A-2", "--reason", "staff", "--text", "asked by phone")
	require.Equal(t, second.ID, cancelled.ID)
	require.Equal(t, client.ReservationStateCancelled, cancelled.State)
	require.Equal(t, exitNotFound, invoke(t, back, "renew", "A-9").code)
	require.Equal(t, exitNotFound, invoke(t, back, "explain", "A-9").code)
	asked[client.Server](t, back, "servers", "show", first.Server.ID)

	// 4. Keys end. The administrator's own way is the database or a key that may.
	keys := asked[struct{ Items []client.Key }](t, back, "keys", "list")
	require.Len(t, keys.Items, 2)
	asked[client.Key](t, back, "keys", "revoke", keys.Items[0].ID)
	require.Eventually(t, func() bool { return invoke(t, shop, "reserve", "--order", "A-4").code == exitNotAllowed }, hang, poll)
	require.Equal(t, exitNotAllowed, invoke(t, back, "orgs", "list").code, "another organization's business")
	require.Equal(t, exitNotAllowed, invoke(t, back, "keys", "create", "more", "--scope", "platform").code)
	listed := asked[struct{ Items []client.Organization }](t, s.admin(), "orgs", "list")
	require.Len(t, listed.Items, 1)
	closing := asked[client.Organization](t, s.admin(), "orgs", "set", "acme", "--closing")
	require.True(t, closing.Closing)
	flags := asked[struct{ Items []client.Flag }](t, s.admin(), "flags", "list")
	require.Equal(t, 100, flags.Items[0].Percent)
	require.Equal(t, exitDone, invoke(t, s.admin(), "flags", "unset", "reservations", "--org", "acme").code)
	require.Equal(t, exitNotFound, invoke(t, s.admin(), "flags", "unset", "reservations", "--org", "acme").code)
	require.Equal(t, exitNotFound, invoke(t, s.admin(), "flags", "set", "holidays", "on").code)
	require.Equal(t, exitUsage, invoke(t, s.admin(), "flags", "set", "reservations", "101").code)

	// 5. The end writes what was gathered meanwhile.
	s.end(syscall.SIGTERM)
	var unused int
	require.NoError(t, poolOf(t, s.database).QueryRow(t.Context(), `SELECT count(*) FROM api_keys WHERE last_used_at IS NULL`).Scan(&unused))
	require.Zero(t, unused)
}

// What fell due while no service ran is swept by the next one.
func TestServeSweeps(t *testing.T) {
	t.Parallel()
	database := postgrestest.URL(t)
	admin := []string{"ALLOCATOR_DATABASE_URL=" + database}
	asked[client.Organization](t, admin, "orgs", "create", "acme")
	asked[client.FlagOverride](t, admin, "flags", "set", "reservations", "on", "--org", "acme")
	s := serve(t, database) // knows the switch from the start
	caller := s.caller("acme", "checkout,operator")
	addServer(t, caller, "one")
	held := asked[client.Reservation](t, caller, "reserve", "--order", "A-1")
	s.end(syscall.SIGTERM)
	pool := poolOf(t, database)
	_, err := pool.Exec(t.Context(), `UPDATE reservations SET expires_at = clock_timestamp() - interval '1 second'`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `DELETE FROM river_job`) // those of the first service, which count for their minute
	require.NoError(t, err)

	next := serve(t, database)
	require.Eventually(t, func() bool {
		var state, by string
		err := pool.QueryRow(t.Context(), `SELECT state, coalesce(ended_by_kind, '') FROM reservations`).Scan(&state, &by)
		return err == nil && state == "expired" && by == "sweep"
	}, hang, poll, "nobody but the sweep came by: %s", held.ID)
	next.end(syscall.SIGTERM)
}

// addServer adds a ready one over HTTP, as an operator would.
func addServer(t *testing.T, env []string, name string) {
	t.Helper()
	api, err := client.New(strings.TrimPrefix(env[0], "ALLOCATOR_URL="), strings.TrimPrefix(env[1], "ALLOCATOR_API_KEY="))
	require.NoError(t, err)
	_, err = api.CreateServerWithResponse(t.Context(), nil, client.NewServer{Name: name, Site: "FSN1", State: client.ServerStateReady})
	require.NoError(t, err)
}

// poolOf opens a database for a test that looks or writes behind the service's back.
func poolOf(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	return postgrestest.Pool(t, url)
}
