package migrations_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/migrations"
	"allocator/store/postgres/postgrestest"
)

// recorder is a log that tests can read: how often each migration was applied,
// and a signal for each warning.
type recorder struct {
	mu       sync.Mutex
	applied  map[int64]int
	then     func(applied int64) // may be nil
	warnings chan string
}

func newRecorder() *recorder {
	return &recorder{applied: map[int64]int{}, warnings: make(chan string, 100)}
}

func (*recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler             { return r }
func (r *recorder) WithGroup(string) slog.Handler                  { return r }

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		r.warnings <- record.Message
	}
	if record.Message != "migration applied" {
		return nil
	}
	record.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "version" {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.applied[attr.Value.Int64()]++
			if r.then != nil {
				r.then(attr.Value.Int64())
			}
		}
		return true
	})
	return nil
}

func versionOf(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	version, err := migrations.Version(t.Context(), pool)
	require.NoError(t, err)
	return version
}

// Five replicas that start together, on an empty database and on one whose migration was broken off before its last step,
// take turns: each step is done once, all of them end well, and no lock is left.
//
// Cases: OP-01. Faults: F-D1.
func TestReplicasThatStartTogetherTakeTurns(t *testing.T) {
	t.Parallel()
	for round := range 6 {
		url, log := postgrestest.EmptyURL(t), newRecorder()
		if round%2 == 1 {
			ctx, kill := context.WithCancel(t.Context())
			log.then = func(applied int64) {
				if applied == migrations.Latest()-1 {
					kill()
				}
			}
			require.Error(t, migrations.Up(ctx, postgrestest.Pool(t, url), slog.New(log)))
			require.Equal(t, migrations.Latest()-1, versionOf(t, postgrestest.Pool(t, url)))
		}
		errs := make(chan error, 5)
		start := make(chan struct{})
		for range cap(errs) {
			pool := postgrestest.Pool(t, url)
			go func() {
				<-start
				errs <- migrations.Up(t.Context(), pool, slog.New(log))
			}()
		}
		close(start)
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
		require.Contains(t, log.applied, migrations.Latest())
		for version, times := range log.applied {
			require.Equal(t, 1, times, "migration %d", version)
		}
		after := postgrestest.Pool(t, url)
		require.Equal(t, migrations.Latest(), versionOf(t, after))
		require.Eventually(t, func() bool { // the server may notice a moment later that somebody has gone
			var locks int
			err := after.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&locks)
			return err == nil && locks == 0
		}, time.Minute, 10*time.Millisecond)
	}
}

func TestUpOnACurrentSchemaDoesNothing(t *testing.T) {
	t.Parallel()
	pool, log := postgrestest.New(t), newRecorder()
	require.NoError(t, migrations.Up(t.Context(), pool, slog.New(log)))
	require.Empty(t, log.applied)
}

func TestPoolOfOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(postgrestest.EmptyURL(t))
	require.NoError(t, err)
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()

	require.NoError(t, migrations.Up(t.Context(), pool, slog.New(slog.DiscardHandler)))
	require.Equal(t, migrations.Latest(), versionOf(t, pool))
}

func TestServiceTimeoutsDoNotCutAMigration(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(postgrestest.EmptyURL(t))
	require.NoError(t, err)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET statement_timeout = '1ms'")
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()

	require.NoError(t, migrations.Up(t.Context(), pool, slog.New(slog.DiscardHandler)))
}

// blockTable makes a table that the migrations want to make, and does not commit until the test says so.
func blockTable(t *testing.T, url string) pgx.Tx {
	t.Helper()
	tx, err := postgrestest.Pool(t, url).Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	_, err = tx.Exec(t.Context(), "CREATE TABLE river_migration (line text)")
	require.NoError(t, err)
	return tx
}

// Faults: F-D4.
func TestMigrationThatCannotHaveItsTableIsBegunAgain(t *testing.T) {
	t.Parallel()
	url, log := postgrestest.EmptyURL(t), newRecorder()
	blocker := blockTable(t, url)

	done := make(chan error, 1)
	pool := postgrestest.Pool(t, url)
	go func() { done <- migrations.UpWithLockTimeout(t.Context(), pool, slog.New(log), 50*time.Millisecond) }()
	select {
	case <-log.warnings:
	case err := <-done:
		t.Fatalf("the migration should be waiting for its table, it returned %v", err)
	}
	require.NoError(t, blocker.Rollback(t.Context()))

	require.NoError(t, <-done)
	require.Equal(t, migrations.Latest(), versionOf(t, pool))
}

// Faults: F-D4.
func TestMigrationGivesUpOnATableItNeverGets(t *testing.T) {
	t.Parallel()
	url, log := postgrestest.EmptyURL(t), newRecorder()
	blockTable(t, url)

	err := migrations.UpWithLockTimeout(t.Context(), postgrestest.Pool(t, url), slog.New(log), time.Millisecond)
	require.ErrorContains(t, err, "lock timeout")
}
