package postgres

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// patience bounds waits of these tests; nothing is asserted about a time.
const patience = 30 * time.Second

func openPool(t *testing.T, url string, conns int32) *pgxpool.Pool {
	t.Helper()
	pool, err := Open(t.Context(), url, PoolOptions{MaxConns: conns})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func execute(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// read reads one value.
func read[T any](t *testing.T, db querier, sql string, args ...any) T {
	t.Helper()
	var value T
	require.NoError(t, db.QueryRow(t.Context(), sql, args...).Scan(&value))
	return value
}

// closedAddress is one at which nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// awayPool is a pool of a server that is not there.
func awayPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://somebody@"+closedAddress(t)+"/nowhere?sslmode=disable")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// waits starts f and returns when its statement waits for a lock of another session.
func waits(t *testing.T, pool *pgxpool.Pool, f func()) {
	t.Helper()
	before := read[int](t, pool, lockWaiters)
	go f()
	require.Eventually(t, func() bool { return read[int](t, pool, lockWaiters) > before }, patience, 5*time.Millisecond)
}

const lockWaiters = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

// constraintOf is the rule that refused a row.
func constraintOf(err error) string {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return ""
	}
	return refused.ConstraintName
}
