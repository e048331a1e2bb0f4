package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// scratch is a database with a table of its own and a pool of one connection, so that a leaked one is missed at once.
func scratch(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := openPool(t, postgrestest.URL(t), 1)
	execute(t, pool, `CREATE TABLE tried (n int UNIQUE)`)
	return pool
}

const insertTried = `INSERT INTO tried VALUES ($1)`

// requireClean asserts that nothing was written, that every connection is back, and that the next user of the one
// connection finds no transaction on it.
func requireClean(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, patience, time.Millisecond, "a connection is missing")
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	require.Equal(t, "I", string(conn.Conn().PgConn().TxStatus()))
	require.True(t, read[bool](t, conn, `SELECT pg_current_xact_id_if_assigned() IS NULL`))
	require.Zero(t, read[int](t, conn, `SELECT count(*) FROM tried`))
	require.Eventually(t, func() bool { // a dropped connection is noticed by the server a moment later
		return read[int](t, conn, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type = 'client backend'`) == 0
	}, patience, 5*time.Millisecond, "a transaction was left open")
}

// A deadlock or a serialization failure repeats the whole transaction, each time in a fresh one, at most three times;
// whether a statement or the commit ran into it.
// Faults: F-R14.
func TestClashesRepeatTheWholeTransaction(t *testing.T) {
	t.Parallel()
	for _, code := range []string{pgerrcode.SerializationFailure, pgerrcode.DeadlockDetected} {
		for _, when := range []string{"IMMEDIATE", "DEFERRED"} {
			for failures, stored := range map[int]bool{1: true, 3: true, 4: false} {
				t.Run(fmt.Sprintf("%s %s %d times", code, when, failures), func(t *testing.T) {
					t.Parallel()
					pool := scratch(t)
					clashing(t, pool, code, when, failures)
					transactions := map[string]bool{}
					err := inTx(t.Context(), pool, func(ctx context.Context, tx *tx) error {
						var id string
						err := tx.send(ctx, step{sql: insertTried, args: []any{len(transactions)}},
							step{sql: `SELECT pg_current_xact_id()::text`, read: oneRow(new(bool), func(row pgx.Rows) error { return row.Scan(&id) })})
						transactions[fmt.Sprint(len(transactions), id)] = true
						return err
					})
					if stored {
						require.NoError(t, err)
						require.Len(t, transactions, failures+1)
						require.Equal(t, failures, read[int](t, pool, `SELECT n FROM tried`), "the last try alone is stored")
						return
					}
					require.ErrorIs(t, err, reservation.ErrUnavailable)
					require.Len(t, transactions, maxRepeats+1)
					requireClean(t, pool)
				})
			}
		}
	}
}

// clashing makes the first inserts fail with the code; the count of a sequence survives the rollback.
func clashing(t *testing.T, pool *pgxpool.Pool, code, when string, failures int) {
	t.Helper()
	execute(t, pool, `CREATE SEQUENCE clashes`)
	execute(t, pool, `CREATE FUNCTION clash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('clashes') <= TG_ARGV[0]::int THEN RAISE EXCEPTION 'on purpose' USING ERRCODE = TG_ARGV[1]; END IF;
		RETURN NULL; END $$`)
	execute(t, pool, fmt.Sprintf(`CREATE CONSTRAINT TRIGGER clash AFTER INSERT ON tried DEFERRABLE INITIALLY %s
		FOR EACH ROW EXECUTE FUNCTION clash(%d, '%s')`, when, failures, code))
}

// Two transactions lock two rows in opposite orders: the server ends one of them, which is repeated, and both are done.
// Faults: F-R14.
func TestDeadlockIsRepeated(t *testing.T) {
	t.Parallel()
	pool := openPool(t, postgrestest.URL(t), 2)
	execute(t, pool, `CREATE TABLE counted (id int PRIMARY KEY, n int NOT NULL)`)
	execute(t, pool, `INSERT INTO counted VALUES (1, 0), (2, 0)`)
	var both, done sync.WaitGroup
	both.Add(2)
	tries := make([]int, 2)
	for i := range 2 {
		done.Go(func() {
			err := inTx(t.Context(), pool, func(ctx context.Context, tx *tx) error {
				count := func(id int) error {
					return tx.send(ctx, step{sql: `UPDATE counted SET n = n + 1 WHERE id = $1`, args: []any{id}})
				}
				if err := count(1 + i); err != nil {
					return err
				}
				if tries[i]++; tries[i] == 1 {
					both.Done()
					both.Wait()
				}
				return count(2 - i)
			})
			if err != nil {
				t.Errorf("transaction %d: %v", i, err)
			}
		})
	}
	done.Wait()
	require.Equal(t, 3, tries[0]+tries[1])
	require.Equal(t, 4, read[int](t, pool, `SELECT sum(n) FROM counted`))
}

// What is no clash is not repeated, and a transaction that failed is not committed though its function says nothing.
func TestOtherErrorsAreNotRepeated(t *testing.T) {
	t.Parallel()
	own := errors.New("no, thank you")
	tests := map[string]struct {
		do   func(ctx context.Context, tx *tx) error
		want string
	}{
		"an error of the caller": {func(ctx context.Context, tx *tx) error {
			return errors.Join(tx.send(ctx, step{sql: insertTried, args: []any{1}}), own)
		}, own.Error()},
		"a violated constraint": {func(ctx context.Context, tx *tx) error {
			return tx.send(ctx, step{sql: insertTried, args: []any{1}}, step{sql: insertTried, args: []any{1}})
		}, "tried_n_key"},
		"an error that the caller swallows": {func(ctx context.Context, tx *tx) error {
			_ = tx.send(ctx, step{sql: insertTried, args: []any{1}}, step{sql: `SELECT 1 / 0`})
			return nil
		}, "nothing was stored"},
		"a queued statement that fails with the commit": {func(_ context.Context, tx *tx) error {
			tx.later(insertTried, 1)
			tx.later(`SELECT 1 / $1::int`, 0)
			return nil
		}, "division by zero"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := scratch(t)
			tries := 0
			err := inTx(t.Context(), pool, func(ctx context.Context, tx *tx) error {
				tries++
				return tt.do(ctx, tx)
			})
			require.ErrorContains(t, err, tt.want)
			require.NotErrorIs(t, err, reservation.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, reservation.ErrUnavailable)
			require.Equal(t, 1, tries)
			requireClean(t, pool)
		})
	}
}

// A panic rolls back, passes on, and leaks no connection: neither between two statements nor while an answer is read.
//
// Cases: OP-09. Faults: F-C9.
func TestPanicInsideATransaction(t *testing.T) {
	t.Parallel()
	tests := map[string]func(ctx context.Context, tx *tx) error{
		"before anything was sent": func(context.Context, *tx) error { panic("on purpose") },
		"after a write": func(ctx context.Context, tx *tx) error {
			if err := tx.send(ctx, step{sql: insertTried, args: []any{1}}); err != nil {
				return err
			}
			panic("on purpose")
		},
		"while an answer is read": func(ctx context.Context, tx *tx) error {
			return tx.send(ctx, step{sql: insertTried, args: []any{1}},
				step{sql: `SELECT generate_series(1, 100000)`, read: func(pgx.Rows) error { panic("on purpose") }})
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := scratch(t)
			require.PanicsWithValue(t, "on purpose", func() { _ = inTx(t.Context(), pool, do) })
			requireClean(t, pool)
		})
	}
}

// A caller that goes away in the middle leaves nothing: neither a row, nor a lock, nor a used connection.
//
// Faults: F-N1.
func TestContextCancelledInMidTransaction(t *testing.T) {
	t.Parallel()
	tests := map[string]func(ctx context.Context, tx *tx, cancel func()) error{
		"before anything was sent": func(_ context.Context, _ *tx, cancel func()) error {
			cancel()
			return nil
		},
		"between a write and the commit": func(ctx context.Context, tx *tx, cancel func()) error {
			err := tx.send(ctx, step{sql: insertTried, args: []any{1}})
			cancel()
			return err
		},
		"while a statement runs": func(ctx context.Context, tx *tx, cancel func()) error {
			time.AfterFunc(50*time.Millisecond, cancel)
			return tx.send(ctx, step{sql: insertTried, args: []any{1}}, step{sql: `SELECT pg_sleep(8)`})
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := scratch(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := inTx(ctx, pool, func(ctx context.Context, tx *tx) error { return do(ctx, tx, cancel) })
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, reservation.ErrOutcomeUnknown, "the commit was never sent")
			requireClean(t, pool)
		})
	}
}

// A session that the server ends in the middle, by an operator or by a timeout, is "unavailable", and what follows on a
// new connection is a new transaction.
//
// Faults: F-C5.
func TestSessionEndedInMidTransaction(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"by an operator":           `SELECT pg_terminate_backend(pg_backend_pid())`,
		"by the statement timeout": `SELECT set_config('statement_timeout', '1ms', true)`,
	}
	for name, sql := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := scratch(t)
			err := inTx(t.Context(), pool, func(ctx context.Context, tx *tx) error {
				return tx.send(ctx, step{sql: insertTried, args: []any{1}}, step{sql: sql}, step{sql: `SELECT pg_sleep(8)`})
			})
			require.ErrorIs(t, err, reservation.ErrUnavailable)
			requireClean(t, pool)
		})
	}
}

// What an error of a commit says about the commit. Only the server's own word that it was refused says that nothing was
// stored.
//
// Faults: F-C6.
func TestCommitMayStand(t *testing.T) {
	t.Parallel()
	server := func(code string) error { return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code}) }
	tests := map[string]struct {
		err  error
		want bool
	}{
		"the connection broke":                      {io.ErrUnexpectedEOF, true},
		"the caller's deadline passed":              {context.DeadlineExceeded, true},
		"an operator ended the session":             {server(pgerrcode.AdminShutdown), true},
		"the server crashed":                        {server(pgerrcode.CrashShutdown), true},
		"a pooler lost the server":                  {server(pgerrcode.ConnectionFailure), true},
		"a deferred rule refused it":                {server(pgerrcode.CheckViolation), false},
		"a serialization failure":                   {server(pgerrcode.SerializationFailure), false},
		"a statement in front of it was cancelled":  {server(pgerrcode.QueryCanceled), false},
		"the server ended it for having been idle":  {server(pgerrcode.IdleInTransactionSessionTimeout), false},
		"the disk was full and the server wrote so": {server(pgerrcode.DiskFull), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, commitMayStand(tt.err))
		})
	}
}
