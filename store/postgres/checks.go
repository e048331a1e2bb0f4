package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/migrations"
)

// minServerVersion is PostgreSQL 15.
const minServerVersion = 150000

// The ways in which a database is not one that the service may serve on.
var (
	ErrTooOld       = errors.New("PostgreSQL is too old: version 15 or newer is needed")
	ErrReadOnly     = errors.New("the database is read-only (a standby, or default_transaction_read_only is on): point the service at the primary")
	ErrAsyncCommit  = errors.New("synchronous_commit is off: an acknowledged reservation could be lost in a crash. Set it to on for this role and database")
	ErrSchemaBehind = errors.New("the database schema is older than this program: run `allocator migrate` first")
	ErrNoTimeout    = errors.New("idle_in_transaction_session_timeout is off, so that a process paused inside a transaction would keep a server's row locked for ever. A pooler drops what the service asks for: set it in the database, with ALTER ROLE ... SET idle_in_transaction_session_timeout = '15s', and statement_timeout and lock_timeout beside it")
	ErrNoArbiter    = errors.New("a unique index that keeps a server from being sold twice is missing or invalid: stop selling, end what it refuses, and build it with REINDEX INDEX CONCURRENTLY; a missing one comes back with the migration that made it")
	ErrSchemaAhead  = errors.New("the database schema is newer than this program can serve: run a newer version of allocator")
)

// CheckServer refuses a database on which the promises cannot be kept. The error says what to do; it matches one of
// the errors above.
func CheckServer(ctx context.Context, pool *pgxpool.Pool) error {
	if err := check(ctx, pool); err != nil {
		return err
	}
	var bounded bool
	err := pool.QueryRow(ctx, `SELECT current_setting('idle_in_transaction_session_timeout') <> '0'`).Scan(&bounded)
	if err == nil && !bounded {
		return ErrNoTimeout
	}
	if err != nil {
		return translate(err)
	}
	return checkArbiters(ctx, pool)
}

// arbiters are the unique indexes on which the promises rest.
var arbiters = []string{
	constraintHeldServer, constraintKey, constraintOccupiedServer, constraintOccupiedLine,
	constraintBoundServer, constraintBoundService, constraintConvertedBefore,
}

// checkArbiters refuses a database in which one of them does not arbitrate: one that is built concurrently and meets two
// rows stays behind as invalid, and takes every row from then on.
func checkArbiters(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, `SELECT wanted.name FROM unnest($1::text[]) AS wanted (name)
		LEFT JOIN pg_index i ON i.indexrelid = to_regclass(wanted.name) AND i.indisunique AND i.indisvalid AND i.indisready
		WHERE i.indexrelid IS NULL`, arbiters)
	if err != nil {
		return translate(err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(missing) > 0 {
		return fmt.Errorf("%w (%s)", ErrNoArbiter, strings.Join(missing, ", "))
	}
	return translate(err)
}

// check is the part of CheckServer that can change while the service runs.
func check(ctx context.Context, pool *pgxpool.Pool) error {
	var version int
	var readOnly bool
	var synchronous string
	err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int,
		pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean, current_setting('synchronous_commit')`).
		Scan(&version, &readOnly, &synchronous)
	switch {
	case err != nil:
		return translate(err)
	case version < minServerVersion:
		return fmt.Errorf("%w, this is %s", ErrTooOld, strconv.Itoa(version/10000))
	case readOnly:
		return ErrReadOnly
	case synchronous == "off":
		return ErrAsyncCommit
	}
	return checkSchema(ctx, pool)
}

// checkSchema lets a binary serve the schema it was built for, and a newer one that says it still serves this binary.
func checkSchema(ctx context.Context, pool *pgxpool.Pool) error {
	have, err := migrations.Version(ctx, pool)
	if err != nil {
		return translate(err)
	}
	mine := migrations.Latest()
	switch {
	case have == mine:
		return nil
	case have < mine:
		return fmt.Errorf("%w (it is at version %d, this program needs %d)", ErrSchemaBehind, have, mine)
	}
	var oldest int64
	err = pool.QueryRow(ctx, `SELECT oldest_binary FROM schema_compatibility`).Scan(&oldest)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == pgerrcode.UndefinedTable {
		oldest, err = have, nil
	}
	if err == nil && mine < oldest {
		err = fmt.Errorf("%w (it is at version %d and serves programs from version %d on, this is %d)", ErrSchemaAhead, have, oldest, mine)
	}
	return err
}

// LossOnTakeOver says in a sentence what a standby that takes over may lose of what was acknowledged; it is empty where
// nothing can be lost, or where there is no standby. That is the operator's choice, and no reason to refuse service.
func LossOnTakeOver(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	var names, commit string
	var standby bool
	err := pool.QueryRow(ctx, `SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
		EXISTS (SELECT FROM pg_stat_replication WHERE application_name IS DISTINCT FROM 'pg_basebackup')`).Scan(&names, &commit, &standby)
	switch {
	case err != nil:
		return "", translate(err)
	case names == "" && standby:
		return "the standby is asynchronous: if it takes over, the last acknowledged reservations are lost. Name it in synchronous_standby_names to keep them", nil
	case names != "" && (commit == "local" || commit == "remote_write"):
		return "synchronous_commit is " + commit + ": a reservation is acknowledged before the standby has it on its disk. Set it to on", nil
	}
	return "", nil
}

// Health tells whether the service can do its work now. It implements the readiness check of a door.
type Health struct{ pool *pgxpool.Pool }

// NewHealth makes the check over the pool that the service uses, so that an exhausted pool shows too.
func NewHealth(pool *pgxpool.Pool) *Health { return &Health{pool: pool} }

// Ready returns nil when the database is reached, writable and of a schema that this binary serves.
func (h *Health) Ready(ctx context.Context) error { return check(ctx, h.pool) }
