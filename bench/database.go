package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/migrations"
	"allocator/store/postgres"
	"allocator/store/postgres/embedded"
)

// OwnDatabase runs a PostgreSQL in a temporary directory, with the settings of its own and with synchronous commits. With
// statements it counts what each statement costs, which slows it down. The caller ends it with stop, which removes the
// directory.
func OwnDatabase(ctx context.Context, binDir string, statements bool) (url string, stop func(context.Context) error, err error) {
	dir, err := os.MkdirTemp("", "allocator-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("make a directory for the database: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // run by root, PostgreSQL has another account, which must get in
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	options := embedded.Options{DataDir: dir, BinDir: binDir}
	server, err := embedded.Start(ctx, options)
	if err == nil && statements {
		server, err = countingStatements(ctx, server, options)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return server.URL(), func(ctx context.Context) error {
		return errors.Join(server.Stop(ctx), os.RemoveAll(dir))
	}, nil
}

// countingStatements starts the server again with the library that counts, and lets that look into functions.
func countingStatements(ctx context.Context, server *embedded.Server, options embedded.Options) (*embedded.Server, error) {
	err := alter(ctx, server.URL(), `ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`)
	if err := errors.Join(err, server.Stop(ctx)); err != nil {
		return nil, err
	}
	if server, err = embedded.Start(ctx, options); err != nil {
		return nil, err
	}
	err = alter(ctx, server.URL(), `ALTER SYSTEM SET pg_stat_statements.track = 'all'`,
		`ALTER SYSTEM SET pg_stat_statements.track_planning = 'on'`, `SELECT pg_reload_conf()`)
	if err != nil {
		return nil, errors.Join(err, server.Stop(ctx))
	}
	return server, nil
}

func alter(ctx context.Context, url string, statements ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("let PostgreSQL count statements: %w", err)
		}
	}
	return nil
}

// mustBeEmpty refuses a database in which somebody keeps something: a run fills it, and empties it again.
func mustBeEmpty(ctx context.Context, admin *pgxpool.Pool) error {
	var relations, schemas int
	err := admin.QueryRow(ctx, `SELECT
			(SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
				WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'),
			(SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname NOT IN ('information_schema', 'public'))`).
		Scan(&relations, &schemas)
	if err != nil {
		return fmt.Errorf("look whether the database is empty: %w", err)
	}
	if relations+schemas > 0 {
		return errors.New("the database is not empty, and a benchmark fills and empties it: give one that was made for it (createdb allocator_bench)")
	}
	return nil
}

// emptied leaves the database as it was given.
func emptied(ctx context.Context, admin *pgxpool.Pool) error {
	_, err := admin.Exec(ctx, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	return err
}

// fresh brings an empty database to the product's schema.
func fresh(ctx context.Context, admin *pgxpool.Pool) error {
	if err := emptied(ctx, admin); err != nil {
		return err
	}
	return migrations.Up(ctx, admin, slog.New(slog.DiscardHandler))
}

// openAdmin connects for what is not measured and may take its time.
func openAdmin(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL cannot be read: write postgres://user:password@host:5432/database") // the cause may show a password
	}
	config.MaxConns = 2
	config.ConnConfig.RuntimeParams["application_name"] = "allocator-bench"
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // the schema is made anew under it
	return pgxpool.NewWithConfig(ctx, config)
}

// openPool is the pool that all contenders share, as the service opens it.
func openPool(ctx context.Context, url string, maxConns int32) (*pgxpool.Pool, error) {
	return postgres.Open(ctx, url, postgres.PoolOptions{MaxConns: maxConns, Application: "allocator"})
}
