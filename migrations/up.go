package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

const (
	// defaultLockTimeout bounds how long a migration queues for a table. Behind a
	// queued ALTER TABLE every reader of that table waits as well.
	defaultLockTimeout = 5 * time.Second
	// lockTries is how often a migration that did not get its table is begun again.
	lockTries = 20
	// siblingPolls is how often, once a second, a replica looks whether the one
	// that is migrating has finished.
	siblingPolls = 300
)

// Up applies the migrations that are missing, one transaction each, and logs
// every one it applied. Replicas that start together take turns by an advisory
// lock; one that finds nothing left to do returns nil. It opens a few
// connections of its own with the pool's settings, because migrations need other
// timeouts than the service, and needs to reach PostgreSQL directly, not through
// a pooler in transaction mode, which breaks session locks.
func Up(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	return up(ctx, pool, log, defaultLockTimeout)
}

func up(ctx context.Context, service *pgxpool.Pool, log *slog.Logger, lockTimeout time.Duration) error {
	pool, err := migrationPool(ctx, service, lockTimeout)
	if err != nil {
		return fmt.Errorf("connect to migrate the database: %w", err)
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // does not close the pool, and has nothing of its own to fail
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, siblingPolls))
	if err != nil {
		return fmt.Errorf("prepare the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(riverMigration(pool, log)),
	)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	return applyAll(ctx, provider, log)
}

// migrationPool is a small pool with the service's settings but a migration's
// timeouts: two connections for goose, the rest for River.
func migrationPool(ctx context.Context, service *pgxpool.Pool, lockTimeout time.Duration) (*pgxpool.Pool, error) {
	config := service.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 4, 0, 0
	prepare := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if prepare != nil {
			if err := prepare(ctx, conn); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0",
			lockTimeout.Milliseconds()))
		return err
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// applyAll takes the migrations one at a time, so that each is logged when it is done.
func applyAll(ctx context.Context, provider *goose.Provider, log *slog.Logger) error {
	for tries := 1; ; {
		result, err := provider.UpByOne(ctx)
		switch {
		case errors.Is(err, goose.ErrNoNextVersion):
			return nil
		case isLockTimeout(err) && tries < lockTries:
			log.WarnContext(ctx, "a migration did not get its table in time and is begun again", "try", tries, "error", err)
			tries++
		case err != nil:
			return fmt.Errorf("migrate the database: %w", err)
		default:
			log.InfoContext(ctx, "migration applied",
				"version", result.Source.Version, "file", result.Source.Path, "duration", result.Duration)
			tries = 1
		}
	}
}

func isLockTimeout(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == pgerrcode.LockNotAvailable
}
