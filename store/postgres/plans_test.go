package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// The tables grow for years, and what is asked of them at every reservation must not grow with them: the planner, left
// to itself, answers each question from its index.
//
// Requirements: R55, R60
func TestPlansUseTheirIndexes(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	fill(t, pool)
	id := newID()
	tests := map[string]struct {
		sql   string
		args  []any
		index string
		sort  bool // is allowed
	}{
		"a batch of the sweep":           {sweepSQL, []any{100}, "reservations_due on reservations due", false},
		"the deadlines of the sweep":     {sweepSQL, []any{100}, "Index Cond: (expires_at <= $0)", false},
		"one row of the sweep":           {sweepOneSQL, []any{"acme", id}, "reservations_pkey", false},
		"the key":                        {keySQL, []any{"acme", "key-77"}, "reservations_one_per_key", false},
		"the order line":                 {lineSQL, []any{"acme", "order-77", "1", 1}, "occupancy_one_per_order_line", false},
		"the customer's open holds":      {policySQL, []any{"acme", "customer-7"}, "reservations_open_of_customer", false},
		"one candidate":                  {lockCandidateSQL, []any{"acme", id}, "servers_pkey", false},
		"a dead hold of one candidate":   {expireDeadHoldSQL, []any{"acme", id}, "reservations_one_held_per_server", false},
		"one reservation":                {reservationSQL, []any{"acme", id}, "reservations_pkey", false},
		"its binding":                    {reservationSQL, []any{"acme", id}, "bindings_one_per_reservation", false},
		"the server of one reservation":  {lockServerOfReservationSQL, []any{"acme", id}, "reservations_pkey", false},
		"what holds one server":          {occupiedSQL, []any{"acme", id}, "occupancy_one_per_server", false},
		"one binding":                    {bindingSQL, []any{"acme", id}, "bindings_pkey", false},
		"whether a frozen list is there": {insertListSQL, []any{"acme", id, []byte{1}, []byte{2}}, "_organization_id_hash_idx", false},
		"the reservations of an order, newest first": {
			`SELECT ` + reservationColumns + fromReservations + ` WHERE r.organization_id = $1 AND r.order_id = ANY ($2::text[]) ORDER BY r.id DESC LIMIT 51`,
			[]any{"acme", []string{"order-77"}},
			"reservations_of_order", true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := explain(t, pool, tt.sql, tt.args...)
			require.Contains(t, plan, tt.index, plan)
			for _, table := range []string{"reservations", "bindings", "occupancy", "servers"} { // of empty partitions a scan costs nothing
				require.NotContains(t, plan, "Seq Scan on "+table, plan)
			}
			require.NotContains(t, plan, "JIT", plan)
			if !tt.sort {
				require.NotContains(t, plan, "Sort", plan)
			}
		})
	}
}

// Statistics that were taken while nothing was held do not lead anybody astray when the shop opens: what is named by its
// id is found by its id, and a customer's holds by the customer, not by reading whatever the organization holds.
//
// Requirements: R45
func TestPlansOfTheMorning(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	fill(t, pool)
	for _, sql := range []string{
		`UPDATE reservations SET state = 'expired', ended_at = clock_timestamp(), ended_by_kind = 'sweep' WHERE state = 'held'`,
		`VACUUM (ANALYZE) reservations, bindings, occupancy`,
		`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, customer_ref, created_by_kind,
				expires_at, max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
			SELECT organization_id, uuid_v7(), id, id::text, '1', 'customer', 'key', clock_timestamp() + interval '1 hour',
				clock_timestamp() + interval '1 day', id, '\x00', 'k1', '{}', '{}', '{"v": 1}', id
			FROM servers s WHERE NOT EXISTS (SELECT FROM occupancy o WHERE o.server_id = s.id)`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	id := newID()
	tests := map[string]struct {
		sql   string
		args  []any
		index string
	}{
		"expiry":       {expireHoldSQL, []any{"acme", id}, "reservations_pkey"},
		"renewal":      {renewSQL, []any{"acme", id, "key", "k"}, "reservations_pkey"},
		"cancellation": {cancelSQL, []any{"acme", id, "key", "k", "other", nil}, "reservations_pkey"},
		"take-over":    {takeOverSQL, []any{"acme", id, "key", "k", "why"}, "reservations_pkey"},
		"binding":      {insertBindingSQL, []any{"acme", id, id, "service", "key", "k", 1}, "reservations_pkey"},
		"conversion": {
			convertSQL, []any{
				"acme", id, "key", "k", id, "service", "acme", newID(), "key", "k", "converted", "it", "done", "request", map[string]string{},
			}, "reservations_pkey",
		},
		"customer's open holds": {policySQL, []any{"acme", "customer-7"}, "reservations_open_of_customer"},
		"key":                   {keySQL, []any{"acme", "key-7"}, "reservations_one_per_key"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := explain(t, pool, tt.sql, tt.args...)
			require.Contains(t, plan, tt.index, plan)
			require.NotContains(t, plan, "reservations_one_held_per_server", plan)
			require.NotContains(t, plan, "Seq Scan on reservations", plan)
		})
	}
	require.Contains(t, explain(t, pool, expireDeadHoldSQL, "acme", id), "reservations_one_held_per_server", "the dead hold of a server")
}

// fill makes a busy organization: 4000 servers sold over and over, 2000 of them held now.
func fill(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	const hold = `INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, customer_ref, created_by_kind,
			expires_at, max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		SELECT organization_id, uuid_v7(), id, 'order-' || (n + $2), '1', 'customer-' || n % 500, 'key',
			clock_timestamp() + interval '1 hour' + n * interval '1 second', clock_timestamp() + interval '1 day',
			'key-' || (n + $2), '\x00', 'k1', '{}', '{}', '{"v": 1}', id
		FROM (SELECT organization_id, id, row_number() OVER (ORDER BY id) AS n FROM servers WHERE organization_id = 'acme') s WHERE n <= $1`
	const expire = `UPDATE reservations SET state = 'expired', ended_at = clock_timestamp(), ended_by_kind = 'sweep' WHERE state = 'held'`
	statements := []struct {
		sql  string
		args []any
	}{
		{`INSERT INTO organizations (id, name) SELECT CASE n WHEN 0 THEN 'acme' ELSE 'org-' || n END, 'x' FROM generate_series(0, 200) n`, nil},
		{`INSERT INTO servers (organization_id, id, source, external_id, site, state)
			SELECT 'acme', uuid_v7(), 'test', n::text, 'FSN1', 'ready' FROM generate_series(1, 4000) n`, nil},
		{hold, []any{4000, 0}},
		{expire, nil},
		{hold, []any{2000, 4000}},
		{`INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
			SELECT s.organization_id, uuid_v7(), s.id, s.id::text, 'person', '{"v": 1}' FROM servers s
			WHERE NOT EXISTS (SELECT FROM occupancy o WHERE o.server_id = s.id)`, nil},
		{`INSERT INTO decision_lists (organization_id, id, hash, body)
			SELECT 'acme', uuid_v7(), sha256(n::text::bytea), n::text::bytea FROM generate_series(1, 5000) n`, nil},
		{`ANALYZE`, nil},
	}
	for _, s := range statements {
		_, err := pool.Exec(t.Context(), s.sql, s.args...)
		require.NoError(t, err, s.sql)
	}
}

// explain returns the plan for these very values, without running it.
func explain(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `EXPLAIN `+sql, args...)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}

// The function that matches drives runs under a server's lock. As a query it would be set up, and where somebody turns it
// on compiled, for each call.
//
// Requirements: R45
func TestMatchingDrivesIsNoQuery(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	var language string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT l.lanname FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
		WHERE p.oid = 'drives_fit(jsonb, jsonb)'::regprocedure`).Scan(&language))
	require.Equal(t, "plpgsql", language)
}
