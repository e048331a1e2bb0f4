package postgres

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/locking"
	"allocator/store/postgres/postgrestest"
)

// locksBundle has two services over one table, as two replicas would, in a database whose clock the test sets.
type locksBundle struct {
	url      string
	pool     *pgxpool.Pool // by which the test looks and sets the clock
	one, two *locking.Grants
	store    *Locks
}

const org, otherOrg = "acme", "globex"

// setupLocks puts a function before the database's own clock_timestamp(), so that time passes when a test says so. It
// is found by name, as the statements name it.
func setupLocks(t *testing.T) *locksBundle {
	t.Helper()
	url := withParameters(t, postgrestest.URL(t), "search_path", "public,pg_catalog")
	b := &locksBundle{url: url, pool: openPool(t, url, 4)}
	execute(t, b.pool, `INSERT INTO organizations (id, name) VALUES ('acme', 'Acme'), ('globex', 'Globex')`)
	execute(t, b.pool, `CREATE TABLE test_clock AS SELECT timestamptz '2031-01-01 00:00Z' AS now`)
	execute(t, b.pool, `CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT now FROM test_clock); END'`)
	b.store = NewLocks(openPool(t, url, 4))
	b.one, b.two = locking.NewGrants(b.store), locking.NewGrants(NewLocks(openPool(t, url, 4)))
	return b
}

func (b *locksBundle) advance(t *testing.T, d time.Duration) {
	t.Helper()
	execute(t, b.pool, `UPDATE test_clock SET now = now + $1`, d)
}

func (b *locksBundle) now(t *testing.T) time.Time {
	t.Helper()
	return read[time.Time](t, b.pool, `SELECT now FROM test_clock`).UTC()
}

// take takes a lock that must be free.
func (b *locksBundle) take(t *testing.T, key string, ttl time.Duration) locking.Grant {
	t.Helper()
	grant, _, err := b.one.Acquire(t.Context(), org, key, ttl)
	require.NoError(t, err)
	require.NotNil(t, grant, "%s is free", key)
	return *grant
}

// requireTaken says that somebody has the lock, which is no error, and returns how long to wait.
func (b *locksBundle) requireTaken(t *testing.T, key string) time.Duration {
	t.Helper()
	grant, left, err := b.two.Acquire(t.Context(), org, key, time.Minute)
	require.NoError(t, err)
	require.Nil(t, grant)
	return left
}

// A lock of another program from start to end, over two replicas: any of them renews and releases what the other gave.
//
// Requirements: L03, L08, L37, L38.
func TestGrantIsTakenRenewedAndReleasedAnywhere(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	grant := b.take(t, "machine:42:bmc", time.Minute)
	require.Equal(t, b.now(t).Add(time.Minute), grant.ExpiresAt)
	require.Equal(t, "machine:42:bmc", grant.Key)
	require.Equal(t, time.Minute, b.requireTaken(t, "machine:42:bmc"))
	b.take(t, "machine:43:bmc", time.Minute)

	b.advance(t, 45*time.Second)
	require.Equal(t, 15*time.Second, b.requireTaken(t, "machine:42:bmc"))
	renewed, err := b.two.Renew(t.Context(), org, grant.Key, grant.Token, 2*time.Minute)
	require.NoError(t, err)
	require.Equal(t, locking.Grant{Key: grant.Key, Token: grant.Token, Fence: grant.Fence, ExpiresAt: b.now(t).Add(2 * time.Minute)}, renewed)
	require.Equal(t, 2*time.Minute, b.requireTaken(t, "machine:42:bmc"))

	require.NoError(t, b.two.Release(t.Context(), org, grant.Key, grant.Token))
	next := b.take(t, "machine:42:bmc", time.Minute)
	require.Greater(t, next.Fence, grant.Fence)
	require.NotEqual(t, grant.Token, next.Token)
}

// A stale holder, or one whose token is another one, renews nothing and frees nothing.
//
// Requirements: L05, L08, L09. Cases: LE-01.
func TestGrantComparesTheToken(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	stale := b.take(t, "key", 10*time.Second)
	b.advance(t, 11*time.Second)
	_, err := b.one.Renew(t.Context(), org, "key", stale.Token, time.Minute)
	require.Equal(t, locking.ErrNotOwner, err, "a lock that ran out is lost, although nobody took it")

	fresh, _, err := b.two.Acquire(t.Context(), org, "key", time.Hour)
	require.NoError(t, err)
	require.Greater(t, fresh.Fence, stale.Fence)
	for name, token := range map[string]string{
		"stale": stale.Token, "changed": strings.ToUpper(fresh.Token), "a part": fresh.Token[1:], "a NUL": "\x00", "no UTF-8": "\xff",
	} {
		_, err := b.one.Renew(t.Context(), org, "key", token, time.Minute)
		require.Equal(t, locking.ErrNotOwner, err, name)
		require.Equal(t, locking.ErrNotOwner, b.one.Release(t.Context(), org, "key", token), name)
	}
	require.Equal(t, time.Hour, b.requireTaken(t, "key"), "nothing was changed")
	require.NoError(t, b.two.Release(t.Context(), org, "key", fresh.Token))
	require.Equal(t, locking.ErrNotOwner, b.two.Release(t.Context(), org, "key", fresh.Token), "it was released")
	_, err = b.one.Renew(t.Context(), org, "never", fresh.Token, time.Minute)
	require.Equal(t, locking.ErrNotOwner, err)
}

// The database's clock says when a lock is over, and at its deadline it is. The process's own clock is years away here.
//
// Requirements: L13, L37. Cases: LE-09.
func TestGrantEndsByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	for _, ttl := range []time.Duration{time.Millisecond, time.Minute, 3 * time.Hour, 24 * time.Hour, locking.MaxTTL} {
		grant := b.take(t, "key", ttl)
		b.advance(t, ttl-time.Microsecond)
		require.Equal(t, time.Microsecond, b.requireTaken(t, "key"))
		b.advance(t, time.Microsecond)
		require.Equal(t, locking.ErrNotOwner, b.one.Release(t.Context(), org, "key", grant.Token))
		_, err := b.one.Renew(t.Context(), org, "key", grant.Token, ttl)
		require.Equal(t, locking.ErrNotOwner, err)
		next := b.take(t, "key", time.Minute)
		require.NoError(t, b.one.Release(t.Context(), org, "key", next.Token))
	}
	b.take(t, "stepped back", time.Minute)
	b.advance(t, -time.Hour)
	require.Equal(t, 61*time.Minute, b.requireTaken(t, "stepped back"), "a clock set back keeps it longer, and gives it to nobody else")
}

// Organizations use the same names without meeting, and cannot touch each other's locks.
//
// Requirements: L37.
func TestGrantsOfOrganizationsAreApart(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	mine := b.take(t, "key", time.Minute)
	theirs, _, err := b.one.Acquire(t.Context(), otherOrg, "key", time.Minute)
	require.NoError(t, err)
	require.NotNil(t, theirs)

	_, err = b.one.Renew(t.Context(), otherOrg, "key", mine.Token, time.Minute)
	require.Equal(t, locking.ErrNotOwner, err)
	require.Equal(t, locking.ErrNotOwner, b.one.Release(t.Context(), otherOrg, "key", mine.Token))
	require.NoError(t, b.one.Release(t.Context(), org, "key", mine.Token))
	_, err = b.one.Renew(t.Context(), otherOrg, "key", theirs.Token, time.Minute)
	require.NoError(t, err)
}

// Of many who ask at once one gets it, for a new key as for a dead one, and the fences of a key grow in the order in
// which it was had.
//
// Requirements: L02, L37.
func TestGrantGoesToOneOfMany(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	var last int64
	for range 20 {
		grants := make(chan *locking.Grant, 8)
		var all sync.WaitGroup
		for i := range cap(grants) {
			service := []*locking.Grants{b.one, b.two}[i%2]
			all.Go(func() {
				grant, _, err := service.Acquire(t.Context(), org, "key", time.Minute)
				if err != nil {
					t.Error(err)
				}
				grants <- grant
			})
		}
		all.Wait()
		close(grants)
		var got []*locking.Grant
		for grant := range grants {
			if grant != nil {
				got = append(got, grant)
			}
		}
		require.Len(t, got, 1)
		require.Greater(t, got[0].Fence, last)
		last = got[0].Fence
		b.advance(t, time.Minute)
	}
}

// waits starts f and returns when its statement waits for somebody's lock on a row.
func (b *locksBundle) waits(t *testing.T, f func()) {
	t.Helper()
	before := read[int](t, b.pool, lockWaiters)
	go f()
	require.Eventually(t, func() bool { return read[int](t, b.pool, lockWaiters) > before }, txPatience, 5*time.Millisecond)
}

const lockWaiters = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

// begin opens a transaction that plays somebody who is slow.
func (b *locksBundle) begin(t *testing.T) pgx.Tx {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

// A renewal that had to wait for its row looks at the clock after the wait: if the lock ran out meanwhile, it is lost.
//
// Requirements: L05, L37. Faults: F-R10.
func TestGrantIsNotRenewedAfterAWaitBeyondItsDeadline(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	grant := b.take(t, "key", time.Minute)
	slow := b.begin(t)
	require.Equal(t, 1, read[int](t, slow, `SELECT 1 FROM locks WHERE key = 'key' FOR UPDATE`))

	outcome := make(chan error, 1)
	b.waits(t, func() {
		_, err := b.one.Renew(t.Context(), org, "key", grant.Token, time.Hour)
		outcome <- err
	})
	b.advance(t, time.Minute)
	require.NoError(t, slow.Rollback(t.Context()), "the row is as it was")
	require.Equal(t, locking.ErrNotOwner, <-outcome)
}

// Whoever asks for a dead lock while another takes it finds that one's lock after the wait.
//
// Requirements: L02, L37.
func TestGrantTakenDuringTheWaitIsContention(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	b.take(t, "key", time.Minute)
	b.advance(t, time.Minute)
	slow := b.begin(t)
	_, err := slow.Exec(t.Context(), acquireLockSQL, org, "key", []byte("theirs"), int64(60_000), int64(0), nil)
	require.NoError(t, err)

	outcome := make(chan *locking.Grant, 1)
	b.waits(t, func() {
		grant, _, err := b.one.Acquire(t.Context(), org, "key", time.Minute)
		if err != nil {
			t.Error(err)
		}
		outcome <- grant
	})
	require.NoError(t, slow.Commit(t.Context()))
	require.Nil(t, <-outcome)
	_, err = b.one.Renew(t.Context(), org, "key", "theirs", time.Minute)
	require.NoError(t, err)
}

// A fence is drawn under the row's lock: whoever waited for its row has a larger one than all that were given out
// meanwhile, also if it drew a smaller one before the wait.
//
// Requirements: L37. Cases: LE-01. Faults: F-R10.
func TestFenceIsDrawnAfterTheWait(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	slow := b.begin(t)
	take := func() (fence int64) {
		var granted bool
		require.NoError(t, slow.QueryRow(t.Context(), acquireLockSQL, org, "key", []byte("theirs"), int64(1), int64(0), nil).Scan(&granted, &fence, nil, nil, nil))
		require.True(t, granted)
		return fence
	}
	first := take()
	outcome := make(chan *locking.Grant, 1)
	b.waits(t, func() {
		grant, _, err := b.one.Acquire(t.Context(), org, "key", time.Hour)
		if err != nil {
			t.Error(err)
		}
		outcome <- grant
	})
	b.advance(t, time.Second)
	second := take()
	require.Greater(t, second, first)
	b.advance(t, time.Second)
	require.NoError(t, slow.Commit(t.Context()))
	grant := <-outcome
	require.NotNil(t, grant)
	require.Greater(t, grant.Fence, second)
}

// Asking for a live lock neither waits for its holder nor writes.
//
// Requirements: L03, L37.
func TestContentionWaitsForNobody(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	b.take(t, "key", time.Minute)
	slow := b.begin(t)
	require.Equal(t, 1, read[int](t, slow, `SELECT 1 FROM locks WHERE key = 'key' FOR UPDATE`))
	drawn := read[int64](t, b.pool, `SELECT last_value FROM lock_fences`)
	for range 3 {
		b.requireTaken(t, "key")
	}
	require.Equal(t, drawn, read[int64](t, b.pool, `SELECT last_value FROM lock_fences`))
}

// A database that is away is an error of its own, for every operation: never "somebody has it", never "not yours".
//
// Requirements: L02, L04, L37.
func TestDatabaseAwayIsNotContention(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	grant := b.take(t, "key", time.Minute)
	broken := locking.NewGrants(NewLocks(unreachablePool(t)))
	got, _, err := broken.Acquire(t.Context(), org, "key", time.Minute)
	require.Nil(t, got)
	require.ErrorIs(t, err, locking.ErrBackend)
	_, err = broken.Renew(t.Context(), org, "key", grant.Token, time.Minute)
	require.ErrorIs(t, err, locking.ErrBackend)
	require.NotErrorIs(t, err, locking.ErrNotOwner)
	err = broken.Release(t.Context(), org, "key", grant.Token)
	require.ErrorIs(t, err, locking.ErrBackend)
	require.NotErrorIs(t, err, locking.ErrNotOwner)
}

// unreachablePool leads to where nobody listens.
func unreachablePool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@"+closedAddress(t)+"/db?sslmode=disable")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// Bad input is refused naming the field, and nothing is changed.
//
// Requirements: L37.
func TestGrantArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	for name, tt := range map[string]struct {
		key, token string
		ttl        time.Duration
		field      string
	}{
		"no key":          {"", "t", time.Minute, "key"},
		"a long key":      {strings.Repeat("x", 256), "t", time.Minute, "key"},
		"a control":       {"a\tb", "t", time.Minute, "key"},
		"no time":         {"key", "t", 0, "ttl_ms"},
		"a negative time": {"key", "t", -1, "ttl_ms"},
		"a broken time":   {"key", "t", time.Millisecond + 1, "ttl_ms"},
		"no token":        {"key", "", time.Minute, "token"},
	} {
		var invalid *locking.InvalidError
		_, err := b.one.Renew(t.Context(), org, tt.key, tt.token, tt.ttl)
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, tt.field, invalid.Field, name)
		if tt.field != "token" {
			_, _, err = b.one.Acquire(t.Context(), org, tt.key, tt.ttl)
			require.ErrorAs(t, err, &invalid, name)
		}
		if tt.field != "ttl_ms" {
			require.ErrorAs(t, b.one.Release(t.Context(), org, tt.key, tt.token), &invalid, name)
		}
	}
	require.Zero(t, read[int](t, b.pool, `SELECT count(*) FROM locks`))
	b.take(t, strings.Repeat("x", 255), time.Minute)
	b.take(t, "Höhe 17 · \"rack\"", time.Minute)
}

// Milliseconds of a request are bounded before they could overflow.
//
// Requirements: L37.
func TestTTLOfARequest(t *testing.T) {
	t.Parallel()
	for _, wrong := range []int64{0, -1, -1 << 63, 1<<63 - 1, 9_223_372_036_855, locking.MaxTTL.Milliseconds() + 1} {
		_, err := locking.TTL(wrong)
		var invalid *locking.InvalidError
		require.ErrorAs(t, err, &invalid, wrong)
		require.Equal(t, "ttl_ms", invalid.Field)
	}
	ttl, err := locking.TTL(1500)
	require.NoError(t, err)
	require.Equal(t, 1500*time.Millisecond, ttl)
}

// Dead locks are kept for a day, because their fences are, and purged afterwards; live ones never.
//
// Requirements: L37.
func TestDeadLocksArePurged(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	released := b.take(t, "released", locking.MaxTTL)
	require.NoError(t, b.one.Release(t.Context(), org, "released", released.Token))
	b.take(t, "lapsed", time.Minute)
	b.take(t, "live", locking.MaxTTL)
	purge := func(most int) int64 {
		purged, err := b.store.purge(t.Context(), most)
		require.NoError(t, err)
		return purged
	}
	b.advance(t, 24*time.Hour)
	require.Zero(t, purge(10), "not older than a day")
	b.advance(t, 2*time.Minute)
	require.EqualValues(t, 1, purge(1))
	require.EqualValues(t, 1, purge(10))
	require.Zero(t, purge(10))
	b.requireTaken(t, "live")
	require.Greater(t, b.take(t, "released", time.Minute).Fence, released.Fence)
}

// Raw SQL cannot make a fence smaller, and a lock that a person breaks by hand is free.
//
// Requirements: L37.
func TestLocksTableKeepsItsRules(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	grant := b.take(t, "key", time.Hour)
	for rule, sql := range map[string]string{
		"locks_fence_grows":                   `UPDATE locks SET fence = fence - 1`,
		"locks_key_has_1_to_255_bytes":        `UPDATE locks SET key = ''`,
		"locks_key_has_no_control_characters": `UPDATE locks SET key = E'a\nb'`,
		"locks_token_has_at_most_64_kib":      `UPDATE locks SET token = repeat('x', 65537)::bytea`,
		"locks_live_has_a_token":              `UPDATE locks SET token = ''`,
		"locks_fence_is_positive":             `INSERT INTO locks (organization_id, key, token, fence, expires_at) VALUES ('acme', 'k', 't', 0, now())`,
	} {
		_, err := b.pool.Exec(t.Context(), sql)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, rule)
		require.Equal(t, rule, refused.ConstraintName)
	}
	execute(t, b.pool, `UPDATE locks SET token = '', expires_at = '-infinity' WHERE key = 'key'`)
	require.Greater(t, b.take(t, "key", time.Minute).Fence, grant.Fence)
}
