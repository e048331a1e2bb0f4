package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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

func setupLocks(t *testing.T) *locksBundle {
	t.Helper()
	url := postgrestest.ClockedURL(t)
	b := &locksBundle{url: url, pool: openPool(t, url, 4)}
	execute(t, b.pool, `INSERT INTO organizations (id, name) VALUES ('acme', 'Acme'), ('globex', 'Globex')`)
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

// waits starts f and returns when its statement waits for somebody's lock.
func (b *locksBundle) waits(t *testing.T, f func()) {
	t.Helper()
	waits(t, b.pool, f)
}

// begin opens a transaction that plays somebody who is slow.
func (b *locksBundle) begin(t *testing.T) pgx.Tx {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}
