package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// Whole months are dropped when all of them is older than decisions must be kept, frozen lists a month later. A decision
// that went with its month is gone, and says so; the months that stay keep what is in them.
func TestOldMonthsAreDropped(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	// The first month that is not wholly older than 400 days, and those before it.
	var first time.Time
	require.NoError(t, pool.QueryRow(t.Context(),
		`SELECT date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC' - interval '400 days')`).Scan(&first))
	names := map[string]bool{}
	for _, parent := range []string{"events", "decisions", "decision_lists"} {
		for back := range 4 {
			month := first.AddDate(0, -back, 0)
			name := parent + month.Format("_2006_01")
			names[name] = back == 0 || back == 1 && parent == "decision_lists"
			_, err := pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('CREATE TABLE `+name+` PARTITION OF `+parent+` FOR VALUES FROM (%L) TO (%L)',
				uuid_v7_floor('`+month.Format(time.DateOnly)+`Z'), uuid_v7_floor('`+month.AddDate(0, 1, 0).Format(time.DateOnly)+`Z')); END $$`)
			require.NoError(t, err, name)
		}
	}
	_, err := pool.Exec(t.Context(), `INSERT INTO organizations (id, name) VALUES ('acme', 'Acme')`)
	require.NoError(t, err)
	decide := func(at time.Time) allocation.DecisionID {
		var id [16]byte
		require.NoError(t, pool.QueryRow(t.Context(), `INSERT INTO decisions (organization_id, id, order_id, order_line, unit, outcome, by_kind, body)
			VALUES ('acme', uuid_v7_floor($1), 'o', '1', 1, 'no_capacity', 'key', '{}') RETURNING id`, at).Scan(&id))
		return allocation.DecisionID(formatID(decisionIDPrefix, id))
	}
	old, kept := decide(first.AddDate(0, 0, -1)), decide(first.AddDate(0, 1, -1))

	store, partitions := NewAllocations(pool), NewPartitions(pool)
	// Somebody reads in a month: nothing is dropped, and nobody has to wait long.
	reader, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = reader.Exec(t.Context(), `SELECT FROM events`)
	require.NoError(t, err)
	_, err = partitions.DropOld(t.Context())
	require.ErrorIs(t, err, reservation.ErrUnavailable)
	require.NoError(t, reader.Rollback(t.Context()))

	dropped, err := partitions.DropOld(t.Context())
	require.NoError(t, err)
	require.Equal(t, 8, dropped)
	for name, stays := range names {
		var there bool
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&there))
		require.Equal(t, stays, there, name)
	}
	_, err = store.Decision(t.Context(), "acme", old)
	require.ErrorIs(t, err, allocation.ErrDecisionGone)
	_, err = store.Decision(t.Context(), "acme", kept)
	require.NoError(t, err)
	dropped, err = partitions.DropOld(t.Context())
	require.NoError(t, err)
	require.Zero(t, dropped)
}

// Whoever makes the months makes those of UTC: an operator whose psql is at home in another time zone, too.
func TestMonthsAreThoseOfUTC(t *testing.T) {
	t.Parallel()
	months := func(pool *pgxpool.Pool, change string) (bounds []string) {
		conn, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		defer conn.Release()
		for _, sql := range []string{
			change, // a year ahead, so that summer time begins and ends in between
			`SELECT make_month_partitions(12)`,
		} {
			_, err := conn.Exec(t.Context(), sql)
			require.NoError(t, err, sql)
		}
		rows, err := conn.Query(t.Context(), `SELECT relname || ' ' || pg_get_expr(relpartbound, oid) FROM pg_class
			WHERE relispartition AND relkind = 'r' AND relname ~ '_[0-9]{4}_[0-9]{2}$' ORDER BY relname`)
		require.NoError(t, err)
		bounds, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return bounds
	}
	home := months(postgrestest.New(t), `SET timezone = 'UTC'`)
	require.Len(t, home, 39, "this month and twelve more, of three tables")
	for _, zone := range []string{"America/St_Johns", "Pacific/Auckland", "Pacific/Kiritimati"} {
		require.Equal(t, home, months(postgrestest.New(t), `SET timezone = '`+zone+`'`), zone)
	}
}
