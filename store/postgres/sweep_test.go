package postgres

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// A batch finds its rows by the index of deadlines and then by their place. Found by their key, which is a pair, every
// row of the table would be held against every picked one, and a large table would never be swept within the time that
// a statement has.
//
// Requirements: R60
func TestSweepReadsOnlyWhatIsDue(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	for _, sql := range []string{
		`INSERT INTO servers (organization_id, id, source, external_id, site, state)
			SELECT 'acme', gen_random_uuid(), 'test', g::text, 'FSN1', 'ready' FROM generate_series(1, 3000) g`,
		`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
				idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
			SELECT organization_id, id, servers.id, external_id, '1', 'person', clock_timestamp() + (external_id::int - 500) * interval '1 second',
				clock_timestamp() + interval '1 hour', external_id, '', 'test', '{}', '{}', '{"v": 1}', id FROM servers`,
		`ANALYZE reservations`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	tests := map[string]struct {
		sql  string
		args []any
		by   string
	}{
		"a batch": {sweepSQL, []any{500}, "Index Cond: (expires_at <= "},
		"one row": {sweepOneSQL, []any{"acme", uuid.Nil}, "Index Cond: ((organization_id = "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, err := pool.Query(t.Context(), `EXPLAIN `+tt.sql, tt.args...)
			require.NoError(t, err)
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			plan := strings.Join(lines, "\n")
			require.Contains(t, plan, "Tid Scan on reservations r")
			require.Contains(t, plan, tt.by)
			require.NotContains(t, plan, "Seq Scan")
		})
	}
}
