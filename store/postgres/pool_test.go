package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// Every connection has the timeouts that keep a stuck session from keeping a server's row locked; the URL may settle
// them otherwise.
//
// Requirements: R03
func TestEveryConnectionHasTimeouts(t *testing.T) {
	t.Parallel()
	const settings = `SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'),
		current_setting('idle_in_transaction_session_timeout'), current_setting('timezone'), current_setting('application_name'))`
	connection := postgrestest.URL(t)
	pool := openPool(t, connection, 3)
	var conns []*pgxpool.Conn
	for range 3 {
		conn, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		t.Cleanup(conn.Release)
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		require.Equal(t, "10s 3s 15s UTC allocator", read[string](t, conn, settings))
	}
	other, err := Open(t.Context(), postgrestest.With(t, connection, map[string]string{"lock_timeout": "0", "statement_timeout": "1min"}), PoolOptions{Application: "bench"})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	require.Equal(t, "1min 0 15s UTC bench", read[string](t, other, settings))
	require.Equal(t, int32(defaultMaxConns), other.Config().MaxConns)
}

// An error about the connection says what to do and never shows the password that stands in the URL.
func TestConnectionErrorsKeepThePassword(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-w0rd"
	server, err := url.Parse(postgrestest.EmptyURL(t))
	require.NoError(t, err)
	server.User, server.Path = url.UserPassword("nobody_of_this_name", secret), "/no_such_database"
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	tests := map[string]struct {
		url         string
		unavailable bool
	}{
		"a port that is none":        {"postgres://user:" + secret + "@host:99999999/db", false},
		"a scheme that is none":      {"://user:" + secret + "@host/db", false},
		"a host that is none":        {"postgres://user:" + secret + "@[::1/db", false},
		"a word that is none":        {"user:" + secret + "@host", false},
		"a key that has no value":    {"host=localhost password=" + secret + " port", false},
		"a mode that is none":        {"postgres://user:" + secret + "@host/db?sslmode=perhaps", false},
		"a pool size that is none":   {"postgres://user:" + secret + "@host/db?pool_max_conns=many", false},
		"a password among spaces":    {"host=localhost password = '" + secret + "' port", false}, // which the driver's own error shows
		"nobody there":               {"postgres://user:" + secret + "@" + closedAddress(t) + "/db?sslmode=disable", true},
		"somebody who never answers": {"postgres://user:" + secret + "@" + silent.Addr().String() + "/db?sslmode=disable", true},
		"a server that refuses":      {server.String(), false}, // trying again would not help
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := Open(ctx, tt.url, PoolOptions{})
			require.Error(t, err)
			require.NotContains(t, err.Error(), secret)
			if tt.unavailable {
				require.ErrorIs(t, err, reservation.ErrUnavailable)
			}
		})
	}
}

// on is a release switch that is on.
type on struct{}

func (on) Enabled(context.Context, identity.OrganizationID) bool { return true }

// A small pool is slow and no deadlock: no request needs a second connection while it has one. Fifty callers reserve, read
// why, convert, bring in servers, count and sweep; all of it is done, and the pool is as good as before.
//
// Cases: OP-05. Faults: F-L5.
func TestSmallPoolsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	for _, size := range []int32{1, 2} {
		t.Run(fmt.Sprintf("%d connections", size), func(t *testing.T) {
			t.Parallel()
			const callers = 50
			pool := openPool(t, postgrestest.URL(t), size)
			execute(t, pool, `INSERT INTO organizations (id, name, hold_limit) VALUES ('acme', 'Acme', 10000)`)
			execute(t, pool, `INSERT INTO servers (organization_id, id, source, external_id, site, state)
				SELECT 'acme', gen_random_uuid(), 'test', g::text, 'FSN1', 'ready' FROM generate_series(1, 200) g`)
			tokens, err := reservation.ParseTokenKeys("test:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
			require.NoError(t, err)
			allocators := []*allocation.Allocator{
				allocation.New(NewAllocations(pool), on{}, tokens),
				allocation.New(NewAllocations(pool), on{}, tokens, allocation.WalkAlways(), allocation.MaxAge(0)), // each request reads in its transaction
			}
			reservations := reservation.NewService(NewReservations(pool), tokens).WatchedBy(allocators[0].Watcher())
			servers := inventory.NewService(NewServers(pool))
			caller := identity.LocalCaller("acme", identity.Actor{Kind: identity.ActorPerson, ID: "tester"})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			sell := func(name string, allocator *allocation.Allocator) error {
				outcome, err := allocator.Reserve(ctx, caller, allocation.Request{
					IdempotencyKey: name, Order: reservation.OrderLine{OrderID: name, Line: "1", Unit: 1},
					Wait: allocation.MaxWait,
				})
				if err != nil || outcome.Refused() {
					return fmt.Errorf("reserve: %+v, %w", outcome, err)
				}
				_, explained := allocator.DecisionByID(ctx, caller, outcome.Decision.ID)
				_, created := servers.Create(ctx, inventory.Change{Organization: "acme", ActorKind: "person", ActorID: "tester"},
					inventory.Server{Source: "test", ExternalID: "new " + name, Site: "FSN1", State: inventory.StatePlanned})
				_, counted := allocator.Capacity(ctx, caller, allocation.Grouping{})
				_, swept := reservations.Sweep(ctx, 10)
				failed := errors.Join(explained, created, counted, swept)
				for range 2 { // the repetition reads the binding by itself
					_, converted := reservations.Convert(ctx, caller, outcome.Reservation.ID, "", name)
					failed = errors.Join(failed, converted)
				}
				return failed
			}
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					if err := sell(fmt.Sprint(i), allocators[i%2]); err != nil {
						t.Errorf("caller %d: %v", i, err)
					}
				})
			}
			all.Wait()
			require.Equal(t, callers, read[int](t, pool, `SELECT count(*) FROM bindings`))
			require.Equal(t, callers, read[int](t, pool, `SELECT count(*) FROM servers WHERE state = 'planned'`))
			require.Zero(t, pool.Stat().AcquiredConns())
			require.NoError(t, sell("afterwards", allocators[1]))
		})
	}
}
