package sweeper

import (
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// A job that nobody can read, of another release or damaged, in front of a hundred good ones: those have their turn. It is
// tried as often as its options say, with pauses that grow, and is kept for an operator, who sees why it failed and
// can have it tried again, now that it can be read.
//
// Cases: JO-06.
func TestUnreadableJobsBlockNobody(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	dueHolds(t, pool, 100)
	insert := func(kind, args string, n int) {
		_, err := pool.Exec(t.Context(), `INSERT INTO river_job (kind, args, max_attempts, priority, queue, state, scheduled_at)
			SELECT $1, $2, 3, 1, 'default', 'available', now() - interval '1 day' / $3::int FROM generate_series(1, $3)`, kind, args, n)
		require.NoError(t, err)
	}
	unreadable := map[string]string{"of_another_release": `{}`, "sweep_reservations": `[7]`}
	for kind, args := range unreadable {
		insert(kind, args, 1)
	}
	insert(PartitionArgs{}.Kind(), `{}`, 100)
	stop := run(t, pool, Options{Every: 2 * time.Second, Reservations: reservation.NewService(postgres.NewReservations(pool), reservation.TokenKeys{})})
	defer stop()
	const good = `SELECT count(*) FROM river_job WHERE kind = 'make_month_partitions' AND state = 'completed' AND max_attempts = 3`
	require.Eventually(t, func() bool { return count(t, pool, good) >= 100 && count(t, pool, stillHeld) == 0 }, patience, 20*time.Millisecond)

	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
	require.NoError(t, err)
	for kind, args := range unreadable {
		var id int64
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT id FROM river_job WHERE kind = $1 AND args = $2::jsonb AND max_attempts = 3`, kind, args).Scan(&id))
		reaches := func(state rivertype.JobState, tries int) (job *rivertype.JobRow) {
			require.Eventually(t, func() bool {
				job, err = client.JobGet(t.Context(), id)
				return err == nil && job.State == state && job.Attempt == tries
			}, patience, 20*time.Millisecond, "%s: %s after %d tries", kind, state, tries)
			return job
		}
		again := reaches(rivertype.JobStateRetryable, 2)
		require.Greater(t, again.ScheduledAt, again.Errors[1].At, "it waits")
		require.Greater(t, again.Errors[1].At, again.Errors[0].At)
		_, err = pool.Exec(t.Context(), `UPDATE river_job SET state = 'available', scheduled_at = now() WHERE id = $1`, id) // it has waited
		require.NoError(t, err)
		require.Len(t, reaches(rivertype.JobStateDiscarded, 3).Errors, 3)
		_, err = pool.Exec(t.Context(), `UPDATE river_job SET kind = 'make_month_partitions', args = '{}' WHERE id = $1`, id) // as a release would that knows it
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), `UPDATE river_job SET state = 'available', max_attempts = max_attempts + 1, finalized_at = NULL, scheduled_at = now() WHERE id = $1`, id) // of docs/operations.md
		require.NoError(t, err)
		reaches(rivertype.JobStateCompleted, 4)
	}
}

// However often processes are started anew, there is a sweep in each period in which one starts, although none of them
// lives as long as a period; and however long none ran, none is made up for: the first process to come sweeps once.
//
// Requirements: R55. Cases: JO-03.
func TestRestartsNeitherStopNorPileUpSweeps(t *testing.T) {
	t.Parallel()
	const every, slot = time.Hour, time.Hour / 2 // far longer than any process of this test
	pool := postgrestest.New(t)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
	require.NoError(t, err)
	change := func(sql string, args ...any) {
		_, err := pool.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	opts := sweepOpts(every)
	opts.ScheduledAt = time.Now().Add(-24 * time.Hour) // the last one, a day ago
	last, err := client.Insert(t.Context(), SweepArgs{}, &opts)
	require.NoError(t, err)
	change(`UPDATE river_job SET state = 'completed', finalized_at = scheduled_at, created_at = scheduled_at WHERE id = $1`, last.Job.ID)

	service, began := reservation.NewService(postgres.NewReservations(pool), reservation.TokenKeys{}), time.Now()
	for period := 1; period <= 3; period++ {
		for restart := range 3 {
			change(`DELETE FROM river_job WHERE kind = 'make_month_partitions'`) // by which is seen that a process has begun
			stop := run(t, pool, Options{Every: every, Reservations: service})
			require.Eventually(t, func() bool {
				return count(t, pool, `SELECT count(*) FROM river_job WHERE kind = 'make_month_partitions' AND state = 'completed'`) == 1 &&
					count(t, pool, `SELECT count(*) FROM river_job WHERE state IN ('available', 'running')`) == 0
			}, patience, 20*time.Millisecond)
			stop()
			made := count(t, pool, `SELECT count(*) FROM river_job WHERE kind = 'sweep_reservations' AND state = 'completed' AND created_at > now() - interval '1 hour'`)
			passed := int(time.Now().Truncate(slot).Sub(began.Truncate(slot)) / slot) // a real one may have begun meanwhile
			require.GreaterOrEqual(t, made, period, "start %d", restart)
			require.LessOrEqual(t, made, period+passed, "start %d", restart)
		}
		change(`UPDATE river_job SET unique_key = decode(md5(id::text), 'hex') WHERE kind = 'sweep_reservations'`) // the period is over
	}
}

// Where summer time begins and ends, there is a sweep in each period and none twice, whatever time zone the database is in:
// neither the hour that is left out nor the one that comes twice is seen by the queue.
//
// Cases: EX-04.
func TestSummerTimeIsNoPeriodOfSweeps(t *testing.T) {
	t.Parallel()
	for zone, changes := range map[string][]time.Time{
		"Europe/Berlin":       {time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC), time.Date(2027, 10, 31, 1, 0, 0, 0, time.UTC)},
		"Australia/Lord_Howe": {time.Date(2027, 4, 3, 15, 0, 0, 0, time.UTC), time.Date(2027, 10, 2, 15, 30, 0, 0, time.UTC)},
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			url := postgrestest.URL(t)
			_, err := postgrestest.Pool(t, url).Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = %L', current_database(), '`+zone+`'); END $$`)
			require.NoError(t, err)
			client, err := river.NewClient(riverpgxv5.New(postgrestest.Pool(t, url)), &river.Config{Logger: quiet})
			require.NoError(t, err)
			there, err := time.LoadLocation(zone)
			require.NoError(t, err)
			for _, change := range changes {
				for minute := -70; minute <= 70; minute++ {
					for _, second := range []time.Duration{0, 10 * time.Second} { // a second process, a moment later
						opts := sweepOpts(Every)
						opts.ScheduledAt = change.Add(time.Duration(minute)*time.Minute + second).In(there)
						job, err := client.Insert(t.Context(), SweepArgs{}, &opts)
						require.NoError(t, err)
						require.Equal(t, second > 0, job.UniqueSkippedAsDuplicate, "%d minutes from the change", minute)
					}
				}
			}
		})
	}
}
