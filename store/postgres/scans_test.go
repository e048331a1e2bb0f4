package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// history puts eleven months of ended reservations behind the busy organization of fill: each with its decision and two
// events in the month in which it was made, and one of ten with a binding that has ended. Triggers, which allow a row to
// begin as held alone, are off meanwhile. The months are the last whole ones, as full as each other whatever day it is: of a
// month with few rows, as this one is on its first day, the database reads all rather than look into an index.
var history = []string{
	`DO $$
	DECLARE
		parent text;
		month  timestamptz;
	BEGIN
		FOREACH parent IN ARRAY '{events, decisions}'::text[] LOOP
			FOR back IN 1..11 LOOP
				month := date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - make_interval(months => back);
				EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
					parent || to_char(month AT TIME ZONE 'UTC', '_YYYY_MM'), parent, uuid_v7_floor(month), uuid_v7_floor(month + interval '1 month'));
			END LOOP;
		END LOOP;
	END $$`,
	`SET session_replication_role = replica`,
	`CREATE TEMP TABLE past AS SELECT n, at, s.id AS server,
			(substr(uuid_v7_floor(at)::text, 1, 14) || '7' || substr(gen_random_uuid()::text, 16))::uuid AS id
		FROM (SELECT n, (date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') - make_interval(months => 1 + n / 2200)) AT TIME ZONE 'UTC'
				+ n % 2200 * interval '18 minutes' AS at FROM generate_series(0, 24199) n) t
		JOIN (SELECT id, row_number() OVER () AS k FROM servers WHERE organization_id = 'acme') s ON s.k = 1 + t.n % 4000`,
	`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, state, created_at, created_by_kind, expires_at,
			max_expires_at, ended_at, ended_by_kind, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		SELECT 'acme', id, server, 'past-' || n, '1', CASE n % 10 WHEN 0 THEN 'converted' ELSE 'expired' END, at, 'key', at,
			at + interval '1 hour', at, 'allocator', 'past-' || n, '\x00', 'k1', '{}', '{}', '{"v": 1}', id
		FROM past`,
	`INSERT INTO bindings (organization_id, id, server_id, service_id, reservation_id, order_id, order_line, unit, created_by_kind,
			decided_at, hold_expires_at, server, ended_at, ended_by_kind)
		SELECT 'acme', id, server, 'past-' || n, id, 'past-' || n, '1', 1, 'key', at, at + interval '1 minute', '{"v": 1}', at, 'key'
		FROM past WHERE n % 10 = 0`,
	`INSERT INTO decisions (organization_id, id, order_id, order_line, unit, outcome, by_kind, body)
		SELECT 'acme', id, 'past-' || n, '1', 1, 'reserved', 'key', '{}' FROM past`,
	`INSERT INTO events (organization_id, id, type, actor_kind, reservation_id, order_id)
		SELECT 'acme', overlay(id::text PLACING k::text FROM 36)::uuid, 'reservation.held', 'key', id, 'past-' || n FROM past, generate_series(1, 2) k`,
	`RESET session_replication_role`,
	`ANALYZE`,
}

func fillHistory(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for _, sql := range history {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
}

// What is asked of the history is answered from its indexes, in the month that an id tells.
//
// Requirements: R38
func TestPlansOfTheHistoryUseItsIndexes(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	fill(t, pool)
	fillHistory(t, pool)
	require.Len(t, filledMonths(t, pool), 22, "eleven of events and of decisions")
	var sold [16]byte
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT id FROM decisions WHERE order_id = 'past-77'`).Scan(&sold))
	const news = "18446744073709551615" // a horizon that nothing is behind
	tests := map[string]struct {
		sql     string
		args    []any
		index   string
		touches int // partitions at the most; 0: all
	}{
		"the events of an order":                     {eventsOfOrderSQL, []any{"acme", "past-77"}, "_organization_id_order_id_id_idx", 0},
		"one decision":                               {decisionSQL, []any{"acme", sold}, "_pkey", 1},
		"the reservations and bindings that changed": {holdingsSinceSQL, []any{"acme", news, []string{"17"}, 1000}, "bindings_changed", 0},
		"the servers that changed":                   {serversSinceSQL, []any{"acme", news, []string{"17"}, 1000}, "servers_changed", 0},
		"the decisions of an order, newest first": {
			`SELECT ` + decisionColumns + ` FROM decisions d WHERE d.organization_id = $1 AND d.order_id = ANY ($2::text[]) ORDER BY d.id DESC LIMIT 51`,
			[]any{"acme", []string{"past-77"}},
			"_organization_id_order_id_id_idx", 0,
		},
		"the newest decisions": {
			`SELECT ` + decisionColumns + ` FROM decisions d WHERE d.organization_id = $1 ORDER BY d.id DESC LIMIT 51`,
			[]any{"acme"},
			"_pkey", 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := explain(t, pool, tt.sql, tt.args...)
			require.Contains(t, plan, tt.index, plan)
			for _, table := range []string{"reservations", "bindings", "occupancy", "servers"} {
				require.NotContains(t, plan, "Seq Scan on "+table, plan)
			}
			for month := range filledMonths(t, pool) {
				require.NotContains(t, plan, "Seq Scan on "+month, plan)
			}
			if tt.touches == 1 {
				require.NotContains(t, plan, "Append", plan)
			}
		})
	}
}

// filledMonths are the partitions that history filled and how often each was read as a whole.
func filledMonths(t *testing.T, pool *pgxpool.Pool) map[string]int {
	t.Helper()
	return scans(t, pool, `relname ~ '^(events|decisions)_[0-9]' AND EXISTS (SELECT FROM pg_class c WHERE c.oid = relid AND c.reltuples >= 2000)`)
}

// scans tells how often tables were read as a whole. The statistics of the pool's one connection are written down first.
func scans(t *testing.T, pool *pgxpool.Pool, which string) map[string]int {
	t.Helper()
	_, err := pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)
	require.NoError(t, err)
	rows, err := pool.Query(t.Context(), `SELECT relname::text, coalesce(seq_scan, 0)::int FROM pg_stat_user_tables WHERE `+which)
	require.NoError(t, err)
	defer rows.Close()
	seen := map[string]int{}
	for rows.Next() {
		var name string
		var n int
		require.NoError(t, rows.Scan(&name, &n))
		seen[name] = n
	}
	require.NoError(t, rows.Err())
	return seen
}

type alwaysOn struct{}

func (alwaysOn) Enabled(context.Context, identity.OrganizationID) bool { return true }

// No act of a sale reads a table as a whole, whatever triggers run behind it: what a provider has sold and what years
// have left behind must not be looked through for one more server.
//
// Requirements: R34, R55
func TestSalesReadNoTableAsAWhole(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	full := postgrestest.Pool(t, url)
	fill(t, full)
	fillHistory(t, full)
	_, err := full.Exec(t.Context(), `INSERT INTO servers (organization_id, id, source, external_id, site, state)
		SELECT 'acme', uuid_v7(), 'free', n::text, 'HEL1', 'ready' FROM generate_series(1, 40) n`)
	require.NoError(t, err)

	pool, err := Open(t.Context(), url, PoolOptions{MaxConns: 1}) // so that its statistics are told by one flush
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	tokens, err := reservation.ParseTokenKeys("test:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	require.NoError(t, err)
	allocator := allocation.New(NewAllocations(pool), alwaysOn{}, tokens)
	sales := reservation.NewService(NewReservations(pool), tokens).WatchedBy(allocator.Watcher())
	caller := identity.LocalCaller("acme", identity.Actor{Kind: identity.ActorPerson, ID: "tester"})
	n := 0
	reserve := func(t *testing.T) *allocation.Outcome {
		t.Helper()
		n++
		name := fmt.Sprint("new-", n)
		outcome, err := allocator.Reserve(t.Context(), caller, allocation.Request{
			IdempotencyKey: name, Order: reservation.OrderLine{OrderID: name, Line: "1", Unit: 1}, CustomerRef: "customer-7",
			Requirements: allocation.Requirements{Sites: []string{"HEL1"}},
		})
		require.NoError(t, err)
		require.Equal(t, allocation.OutcomeReserved, outcome.Code, "%+v", outcome.Decision)
		return outcome
	}
	reserve(t) // the first one reads the whole inventory
	for _, act := range []struct {
		name string
		do   func(t *testing.T, id reservation.ID, token string) error
	}{
		{"reserve", func(t *testing.T, _ reservation.ID, _ string) error { t.Helper(); reserve(t); return nil }},
		{"renew", func(t *testing.T, id reservation.ID, token string) error {
			t.Helper()
			_, err := sales.Renew(t.Context(), caller, id, token)
			return err
		}},
		{"cancel", func(t *testing.T, id reservation.ID, token string) error {
			t.Helper()
			_, err := sales.Cancel(t.Context(), caller, id, token, reservation.Cancellation{Reason: reservation.CancelCustomerAbandoned})
			return err
		}},
		{"convert", func(t *testing.T, id reservation.ID, token string) error {
			t.Helper()
			_, err := sales.Convert(t.Context(), caller, id, token, "service-"+string(id))
			return err
		}},
		{"the sweep", func(t *testing.T, _ reservation.ID, _ string) error {
			t.Helper()
			_, err := NewReservations(pool).ExpireDue(t.Context(), 100)
			return err
		}},
		{"what became of an order", func(t *testing.T, _ reservation.ID, _ string) error {
			t.Helper()
			_, err := NewEvents(pool).EventsOfOrder(t.Context(), "acme", "past-77")
			return err
		}},
	} {
		held := reserve(t)
		const tables = `relname IN ('servers', 'reservations', 'bindings', 'occupancy')`
		before, months := scans(t, pool, tables), filledMonths(t, pool)
		require.NoError(t, act.do(t, held.Reservation.ID, held.HoldToken), act.name)
		require.Equal(t, before, scans(t, pool, tables), "times that tables were read as a whole, and then to %s", act.name)
		require.Equal(t, months, filledMonths(t, pool), act.name)
		require.Len(t, months, 22)
	}
}
