package sweeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertest"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// patience bounds waits; nothing is asserted about a time.
const patience = 60 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// sweepFunc and monthsFunc are a sweep and a maker of partitions made of a function.
type (
	sweepFunc  func(ctx context.Context, batch int) (reservation.Swept, error)
	monthsFunc func(ctx context.Context, ahead int) (int, error)
)

func (f sweepFunc) Sweep(ctx context.Context, batch int) (reservation.Swept, error) {
	return f(ctx, batch)
}
func (f monthsFunc) MakeMonths(ctx context.Context, ahead int) (int, error) { return f(ctx, ahead) }
func (f monthsFunc) DropOld(ctx context.Context) (int, error)               { return f(ctx, dropOld) }

// work runs one job with the worker, in a transaction that is rolled back.
func work[T river.JobArgs](t *testing.T, worker river.Worker[T], args T) (*rivertest.WorkResult, error) {
	t.Helper()
	tx, err := postgrestest.New(t).Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	return rivertest.NewWorker(t, riverpgxv5.New(nil), &river.Config{Logger: quiet}, worker).Work(t.Context(), t, tx, args, nil)
}

// A sweep is one job with one attempt: a failure is on record and the next period's job is the retry. It takes short
// batches, and cannot hang into the next period.
//
// Requirements: R55
func TestSweepWorker(t *testing.T) {
	t.Parallel()
	broken := errors.New("three rows are left: a, b and c")
	tests := map[string]struct {
		sweep sweepFunc
		state rivertype.JobState
		says  string
	}{
		"sweeps": {func(context.Context, int) (reservation.Swept, error) {
			return reservation.Swept{Expired: 7}, nil
		}, rivertype.JobStateCompleted, ""},
		"fails": {func(context.Context, int) (reservation.Swept, error) {
			return reservation.Swept{Expired: 4, Failed: 3}, broken
		}, rivertype.JobStateDiscarded, broken.Error()},
		"panics": {func(context.Context, int) (reservation.Swept, error) {
			panic("on purpose")
		}, rivertype.JobStateDiscarded, "on purpose"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batches := 0
			worker := &sweepWorker{log: quiet, reservations: sweepFunc(func(ctx context.Context, batch int) (reservation.Swept, error) {
				batches = batch
				deadline, bounded := ctx.Deadline()
				require.True(t, bounded)
				require.Less(t, time.Until(deadline), Every)
				return tt.sweep(ctx, batch)
			})}
			result, err := work(t, worker, SweepArgs{})
			require.Equal(t, tt.says != "", err != nil)
			require.Equal(t, tt.state, result.Job.State)
			require.Equal(t, 500, batches)
			if tt.says != "" {
				require.Len(t, result.Job.Errors, 1)
				require.Contains(t, result.Job.Errors[0].Error, tt.says)
			}
		})
	}
}

// dropOld stands for the months that are asked for when old ones are dropped.
const dropOld = -1

// Partitions are made three months ahead, and old ones dropped whether or not they could be; a failure is tried again, since the next job is a day away.
func TestPartitionWorker(t *testing.T) {
	t.Parallel()
	var asked []int
	result, err := work(t, &partitionWorker{log: quiet, partitions: monthsFunc(func(_ context.Context, ahead int) (int, error) {
		asked = append(asked, ahead)
		return 3, nil
	})}, PartitionArgs{})
	require.NoError(t, err)
	require.Equal(t, rivertype.JobStateCompleted, result.Job.State)
	require.Equal(t, []int{3, dropOld}, asked)

	result, err = work(t, &partitionWorker{log: quiet, partitions: monthsFunc(func(_ context.Context, ahead int) (int, error) {
		if ahead == dropOld {
			return 0, errors.New("in use")
		}
		return 0, errors.New("no room")
	})}, PartitionArgs{})
	require.ErrorContains(t, err, "no room")
	require.ErrorContains(t, err, "in use")
	require.Contains(t, []rivertype.JobState{rivertype.JobStateRetryable, rivertype.JobStateAvailable}, result.Job.State)
}

// Of the jobs that several processes insert in one period, one stands. A job of an earlier period keeps out no later
// one, whatever became of it: not even one that is "running" for ever, since its worker was killed.
//
// Requirements: R55. Faults: F-J2.
func TestOneSweepPerPeriod(t *testing.T) {
	t.Parallel()
	for _, state := range []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStateRunning, rivertype.JobStateCompleted, rivertype.JobStateScheduled,
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			pool := postgrestest.New(t)
			client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
			require.NoError(t, err)
			insert := func(at time.Time) *rivertype.JobInsertResult {
				opts := sweepOpts(Every)
				opts.ScheduledAt = at
				result, err := client.Insert(t.Context(), SweepArgs{}, &opts)
				require.NoError(t, err)
				return result
			}
			period := time.Now().Add(-time.Hour).Truncate(Every)
			first := insert(period)
			require.False(t, first.UniqueSkippedAsDuplicate)
			_, err = pool.Exec(t.Context(), `UPDATE river_job SET state = $1, attempted_at = now(),
				finalized_at = CASE WHEN $1 = 'completed'::river_job_state THEN now() END WHERE id = $2`, state, first.Job.ID)
			require.NoError(t, err)

			again := insert(period.Add(Every / 4)) // another process, a moment later
			require.True(t, again.UniqueSkippedAsDuplicate)
			require.Equal(t, first.Job.ID, again.Job.ID)
			require.False(t, insert(period.Add(Every)).UniqueSkippedAsDuplicate)
			require.False(t, insert(period.Add(2*Every)).UniqueSkippedAsDuplicate)
		})
	}
}

// However often a worker sweeps, two of its jobs never fall into one slot, and a slot is never too short for River.
func TestSlotIsShorterThanThePeriod(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{2 * time.Second, 10 * time.Second, time.Minute, time.Hour} {
		slot := sweepOpts(every).UniqueOpts.ByPeriod
		require.Less(t, slot, every)
		require.GreaterOrEqual(t, slot, time.Second)
		require.False(t, sweepOpts(every).UniqueOpts.ByArgs)
	}
	require.Equal(t, sweepOpts(time.Minute), SweepArgs{}.InsertOpts())
	require.Less(t, sweepTimeout, Every)
	require.Less(t, rescueAfter, time.Hour)
}

// run runs a sweeper until stop is called, which asserts that it ended in order.
func run(t *testing.T, pool *pgxpool.Pool, o Options) (stop func()) {
	t.Helper()
	o.Log, o.Partitions = quiet, postgres.NewPartitions(pool)
	s, err := New(pool, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(patience):
			require.FailNow(t, "it does not stop")
		}
	})
}

func count(t *testing.T, pool *pgxpool.Pool, sql string) int {
	t.Helper()
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), sql).Scan(&n))
	return n
}

// dueHolds makes n holds whose deadline has passed.
func dueHolds(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	for _, sql := range []string{
		`INSERT INTO servers (organization_id, id, source, external_id, site, state)
			SELECT 'acme', gen_random_uuid(), 'test', g::text, 'FSN1', 'ready' FROM generate_series(1, %d) g`,
		`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
				idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
			SELECT organization_id, id, servers.id, external_id, '1', 'person', clock_timestamp() - interval '1 minute',
				clock_timestamp() + interval '1 hour', external_id, '', 'test', '{}', '{}', '{"v": 1}', id FROM servers LIMIT %d`,
	} {
		_, err := pool.Exec(t.Context(), fmt.Sprintf(sql, n))
		require.NoError(t, err)
	}
}

const (
	stillHeld  = `SELECT count(*) FROM reservations WHERE state = 'held'`
	failedJobs = `SELECT count(*) FROM river_job WHERE kind = 'sweep_reservations' AND state = 'discarded'`
)

// One sweep panics, one meets a deadlock, one loses its connection: each leaves a failed job, and the next period's
// sweep takes place all the same.
//
// Requirements: R55, R56. Cases: EX-05. Faults: F-J4.
func TestFailedSweepsDoNotStopTheNext(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	dueHolds(t, pool, 100)
	store := reservation.NewService(postgres.NewReservations(pool), reservation.TokenKeys{})
	failures := []sweepFunc{
		func(context.Context, int) (reservation.Swept, error) { panic("on purpose") },
		func(ctx context.Context, _ int) (reservation.Swept, error) {
			_, err := pool.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = 'deadlock_detected'; END $$`)
			return reservation.Swept{}, err
		},
		func(ctx context.Context, _ int) (reservation.Swept, error) {
			_, err := pool.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return reservation.Swept{}, err
		},
	}
	var mu sync.Mutex
	next := 0
	stop := run(t, pool, Options{Every: 2 * time.Second, Reservations: sweepFunc(func(ctx context.Context, batch int) (reservation.Swept, error) {
		mu.Lock()
		sweep := store.Sweep
		if next < len(failures) {
			sweep = failures[next]
		}
		next++
		mu.Unlock()
		return sweep(ctx, batch)
	})})
	defer stop()
	require.Eventually(t, func() bool { return count(t, pool, stillHeld) == 0 }, patience, 20*time.Millisecond)
	require.Equal(t, 3, count(t, pool, failedJobs))
	require.Equal(t, 100, count(t, pool, `SELECT count(*) FROM events WHERE type = 'reservation.expired'`))
	stop()
}

// With PollOnly no connection listens, which a pooler in transaction mode would break; without it one does.
//
// Requirements: R64. Faults: F-N5.
func TestPollOnly(t *testing.T) {
	t.Parallel()
	for _, pollOnly := range []bool{true, false} {
		t.Run(fmt.Sprint("poll only: ", pollOnly), func(t *testing.T) {
			t.Parallel()
			url := postgrestest.URL(t)
			pool := postgrestest.Pool(t, url)
			dueHolds(t, pool, 1)
			stop := run(t, pool, Options{
				Every: 2 * time.Second, PollOnly: pollOnly,
				Reservations: reservation.NewService(postgres.NewReservations(pool), reservation.TokenKeys{}),
			})
			defer stop()
			require.Eventually(t, func() bool { return count(t, pool, stillHeld) == 0 }, patience, 20*time.Millisecond)
			const listening = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%'`
			if pollOnly {
				require.Zero(t, count(t, pool, listening))
			} else {
				require.Eventually(t, func() bool { return count(t, pool, listening) == 1 }, patience, 20*time.Millisecond)
			}
			stop()
		})
	}
}

// The month partitions are made by the worker too, at its start, and those whose time is over are dropped.
func TestWorkerMakesPartitions(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	const last = `SELECT relname FROM pg_class WHERE relname ~ '^events_[0-9]{4}' AND relkind = 'r' ORDER BY relname DESC LIMIT 1`
	var newest string
	require.NoError(t, pool.QueryRow(t.Context(), last).Scan(&newest))
	_, err := pool.Exec(t.Context(), `DROP TABLE `+pgx.Identifier{newest}.Sanitize())
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `CREATE TABLE events_2020_01 PARTITION OF events
		FOR VALUES FROM (uuid_v7_floor('2020-01-01Z')) TO (uuid_v7_floor('2020-02-01Z'))`)
	require.NoError(t, err)
	stop := run(t, pool, Options{Every: time.Hour, Reservations: sweepFunc(func(context.Context, int) (reservation.Swept, error) {
		return reservation.Swept{}, nil
	})})
	defer stop()
	require.Eventually(t, func() bool {
		var made, old bool
		return pool.QueryRow(t.Context(), `SELECT to_regclass($1) IS NOT NULL, to_regclass('events_2020_01') IS NOT NULL`, newest).
			Scan(&made, &old) == nil && made && !old
	}, patience, 20*time.Millisecond)
	stop()
}
