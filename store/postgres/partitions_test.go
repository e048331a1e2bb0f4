package postgres

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
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
	for _, zone := range []string{"UTC", "America/St_Johns", "Pacific/Auckland", "Pacific/Kiritimati"} {
		pool := postgrestest.New(t)
		conn, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), `SET timezone = '`+zone+`'`)
		require.NoError(t, err)
		made := read[int](t, conn, `SELECT make_month_partitions(12)`) // a year ahead: summer time begins and ends in between
		conn.Release()
		require.GreaterOrEqual(t, made, 3*8, zone)
		rows, err := pool.Query(t.Context(), `SELECT right(relname, 7), pg_get_expr(relpartbound, oid) FROM pg_class
			WHERE relispartition AND relkind = 'r' AND relname ~ '_[0-9]{4}_[0-9]{2}$'`)
		require.NoError(t, err)
		type partition struct{ Month, Bound string }
		months, err := pgx.CollectRows(rows, pgx.RowToStructByPos[partition])
		require.NoError(t, err)
		for _, m := range months {
			month, err := time.Parse("2006_01", m.Month)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("FOR VALUES FROM ('%s') TO ('%s')", firstID(month), firstID(month.AddDate(0, 1, 0))), m.Bound, "%s in %s", m.Month, zone)
		}
	}
}

// Several that find the same months missing, as replicas that start together, make them once: one makes them, the others wait.
func TestMonthsAreMadeOnce(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	for _, name := range []string{"events", "decisions"} {
		newest := read[string](t, pool, `SELECT relname FROM pg_class WHERE relname ~ $1 AND relkind = 'r' ORDER BY relname DESC LIMIT 1`, "^"+name+"_[0-9]{4}")
		execute(t, pool, `DROP TABLE `+pgx.Identifier{newest}.Sanitize())
	}
	first, err := pool.Begin(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, read[int](t, first, `SELECT make_month_partitions(3)`), 2)
	made, failed := make(chan int, 1), make(chan error, 1)
	go func() {
		n, err := NewPartitions(pool).MakeMonths(t.Context(), 3)
		failed <- err
		made <- n
	}()
	require.Eventually(t, func() bool { return read[int](t, pool, lockWaiters) == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, first.Commit(t.Context()))
	require.NoError(t, <-failed)
	require.Zero(t, <-made)
}

// firstID is the smallest id of that millisecond.
func firstID(at time.Time) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(at.UnixMilli())<<16)
	return id
}
