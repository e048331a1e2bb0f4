package locking

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// read reads one value.
func read[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var value T
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&value))
	return value
}

const (
	heldLocks    = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	lockSessions = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'allocator lock %'`
)

// The hash is the 64-bit one. Among 200,000 keys the 32-bit one has pairs that collide, and each of such a pair can be
// locked here while the other is.
//
// Requirements: L21.
func TestPostgresHashesKeysTo64Bits(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	conn := connectTo(t, address)
	const collisions = `SELECT count(*) FROM (SELECT 1 FROM generate_series(1, 200000) n GROUP BY %s HAVING count(*) > 1) pairs`
	require.Positive(t, read[int](t, conn, strings.Replace(collisions, "%s", `hashtext('machine:' || n)`, 1)))
	require.Zero(t, read[int](t, conn, strings.Replace(collisions, "%s", strings.Replace(keyHash, "$1", `'machine:' || n`, 1), 1)))

	pair := read[[]string](t, conn, `SELECT array_agg('machine:' || n) FROM generate_series(1, 200000) n
		GROUP BY hashtext('machine:' || n) HAVING count(*) > 1 LIMIT 1`)
	l := openPostgres(t, PostgresConfig{URL: address})
	for _, key := range pair {
		take(t, l, key, long)
	}
	require.Equal(t, len(pair), read[int](t, conn, heldLocks))
	require.Equal(t, 1, read[int](t, conn, `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND (l.classid::bigint << 32 | l.objid::bigint) = `+keyHash+` AND a.application_name = 'allocator lock ' || $1`,
		pair[0]), "one can see who has it, and under which key")
}

// The text of the key stands beside the lock: if two keys ever had one hash, it would show, as an error and not as
// contention, since waiting does not help.
//
// Requirements: L02, L21.
func TestPostgresCollisionIsVisible(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	other := connectTo(t, address)
	l := openPostgres(t, PostgresConfig{URL: address})
	read[any](t, other, `SELECT pg_advisory_lock(`+keyHash+`)`, "mine")

	requireTaken(t, l, "mine") // by somebody at a terminal, perhaps: contention
	read[string](t, other, `SELECT set_config('application_name', 'allocator lock theirs', false)`)
	h, err := l.Try(t.Context(), "mine", long)
	require.Nil(t, h)
	require.ErrorIs(t, err, ErrBackend)
	require.ErrorContains(t, err, `"mine" has the same 64-bit hash as that of the session "allocator lock theirs"`)
}

// Names of sessions are distinct for distinct keys, although they are short and plain.
//
// Requirements: L21.
func TestPostgresSessionNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	seen := map[string]string{}
	for _, key := range []string{"job:audit", long, long + "y", "rack ü", "rack ö", strings.Repeat("x", 48), strings.Repeat("x", 49), "a~b"} {
		name := nameOf(key)
		require.LessOrEqual(t, len(name), maxSessionName)
		require.Empty(t, seen[name], "%s is also the name of %s", name, seen[name])
		seen[name] = key
	}
	require.Contains(t, seen, "allocator lock job:audit")

	address := postgrestest.EmptyURL(t)
	l := openPostgres(t, PostgresConfig{URL: address})
	for name, key := range seen {
		take(t, l, key, MaxTTL)
		require.Equal(t, 1, read[int](t, connectTo(t, address), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`, name))
	}
}

// There is no time to live: a lock for 100 ms is still held when the database has counted 300.
//
// Requirements: L22.
func TestPostgresLockHasNoTimeToLive(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	l := openPostgres(t, PostgresConfig{URL: address})
	h := take(t, l, "key", 100*time.Millisecond)
	read[any](t, connectTo(t, address), `SELECT pg_sleep(0.3)`)
	requireTaken(t, l, "key")
	require.NoError(t, l.Renew(t.Context(), h))
	require.NoError(t, l.Release(t.Context(), h))
}

// Each lock keeps a connection of its own open, found by the handle; releasing it unlocks and drops the connection. An
// unsuccessful try leaves none.
//
// Requirements: L23, L24, L26.
func TestPostgresLockHasAConnectionOfItsOwn(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	conn := connectTo(t, address)
	l := openPostgres(t, PostgresConfig{URL: address})
	var handles []*Handle
	for _, key := range []string{"a", "b", "c"} {
		handles = append(handles, take(t, l, key, long))
		requireTaken(t, l, key)
	}
	count := func(n int) {
		t.Helper()
		eventually(t, func() bool { return read[int](t, conn, lockSessions) == n && read[int](t, conn, heldLocks) == n }, "one session for each lock")
	}
	count(3)
	require.NoError(t, l.Release(t.Context(), handles[1]))
	count(2)
	requireTaken(t, l, "a")
	take(t, l, "b", long)
	require.NoError(t, l.Cleanup(t.Context()))
	count(0)
}

// Dropping the connection alone frees the lock, as when its process dies.
//
// Requirements: L24, L25.
func TestPostgresLockGoesWithItsConnection(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	l, other := openPostgres(t, PostgresConfig{URL: address}), openPostgres(t, PostgresConfig{URL: address})
	h := take(t, l, "key", long)
	require.NoError(t, l.find(h).conn.PgConn().Conn().Close()) // no farewell, no unlocking
	eventually(t, func() bool {
		fresh, err := other.Try(t.Context(), "key", long)
		return err == nil && fresh != nil
	}, "somebody else has it")
	require.Equal(t, ErrNotOwner, l.Renew(t.Context(), h))
}

// A renewal asks whether the session is alive. When it was ended, the renewal fails, and another node has the lock.
//
// Requirements: L05, L25.
func TestPostgresRenewalSeesTheSessionEnd(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	l, other := openPostgres(t, PostgresConfig{URL: address}), openPostgres(t, PostgresConfig{URL: address})
	h := take(t, l, "key", long)
	require.NoError(t, l.Renew(t.Context(), h))
	endSession(t, address, "key")
	take(t, other, "key", long)
	require.Equal(t, ErrNotOwner, l.Renew(t.Context(), h))
	require.Empty(t, l.live, "what is lost takes no place")
	require.Zero(t, l.places)
}

// Tens of locks, not thousands: beyond the limit the backend says so, which is not contention. What was released, failed
// or is somebody else's takes no place.
//
// Requirements: L02, L26.
func TestPostgresHasALimit(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	l, other := openPostgres(t, PostgresConfig{URL: address, MaxLocks: 2}), openPostgres(t, PostgresConfig{URL: address})
	take(t, other, "theirs", long)
	for range 5 {
		requireTaken(t, l, "theirs")
	}
	first := take(t, l, "one", long)
	take(t, l, "two", long)

	h, err := l.Try(t.Context(), "three", long)
	require.Nil(t, h)
	require.ErrorIs(t, err, ErrBackend)
	require.ErrorContains(t, err, "raise pg.max_locks")
	require.Equal(t, DefaultMaxLocks, other.limit)

	require.NoError(t, l.Release(t.Context(), first))
	take(t, l, "three", long)
}

// Rows read under the lock are as consistent as the lock: who gets it next sees everything that was committed under it.
// Without it the same reading and writing loses updates.
//
// Requirements: L27.
func TestPostgresLockGuardsRows(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	conn := connectTo(t, address)
	_, err := conn.Exec(t.Context(), `CREATE TABLE tally AS SELECT 0 AS n`)
	require.NoError(t, err)
	const workers, each = 4, 5
	var all sync.WaitGroup
	for range workers {
		l, own := openPostgres(t, PostgresConfig{URL: address}), connectTo(t, address)
		all.Go(func() {
			for done := 0; done < each; {
				ran, err := While(t.Context(), l, "tally", long, func(ctx context.Context) error {
					var n int
					if err := own.QueryRow(ctx, `SELECT n FROM tally`).Scan(&n); err != nil {
						return err
					}
					_, err := own.Exec(ctx, `UPDATE tally SET n = $1`, n+1)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				if ran {
					done++
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, workers*each, read[int](t, conn, `SELECT n FROM tally`))

	other := connectTo(t, address) // the control: both read before either writes
	mine, theirs := read[int](t, conn, `SELECT n FROM tally`), read[int](t, other, `SELECT n FROM tally`)
	read[int](t, conn, `UPDATE tally SET n = $1 RETURNING n`, mine+1)
	read[int](t, other, `UPDATE tally SET n = $1 RETURNING n`, theirs+1)
	require.Equal(t, workers*each+1, read[int](t, conn, `SELECT n FROM tally`), "one of two increments is lost")
}

// Hundreds of locked operations of ten workers, some of which want the same, leave no lock and no session behind, and
// never have more than one each.
//
// Requirements: L23, L24. Cases: JO-11.
func TestPostgresLeavesNoLocksBehind(t *testing.T) {
	t.Parallel()
	const workers, operations = 10, 250 // each a password exchange, which the race detector makes slow
	address := postgrestest.EmptyURL(t)
	conn := connectTo(t, address)
	l := openPostgres(t, PostgresConfig{URL: address, MaxLocks: workers})
	var left, most atomic.Int64
	left.Store(operations)
	var all sync.WaitGroup
	for worker := range workers {
		watcher := connectTo(t, address)
		all.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				_, err := While(t.Context(), l, fmt.Sprint("key:", max(1, worker)), long, func(ctx context.Context) error {
					if worker > 0 || n%10 != 0 {
						return nil
					}
					var held int64
					err := watcher.QueryRow(ctx, heldLocks).Scan(&held)
					most.Store(max(most.Load(), held))
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, most.Load(), int64(workers))
	eventually(t, func() bool { return read[int](t, conn, heldLocks) == 0 && read[int](t, conn, lockSessions) == 0 }, "nothing is left at idle")
	require.Zero(t, l.places)
}
