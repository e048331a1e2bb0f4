package sweeper

import (
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// A job that nobody can read, of another release or damaged, keeps no other from its turn: it fails by itself, waits
// before it is tried again, and is there for an operator to see.
//
// Cases: JO-06.
func TestUnreadableJobsBlockNobody(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	dueHolds(t, pool, 100)
	for _, bad := range []string{`('of_another_release', '{}')`, `('sweep_reservations', '[7]')`} {
		_, err := pool.Exec(t.Context(), `INSERT INTO river_job (kind, args, max_attempts, priority, queue, state, scheduled_at)
			SELECT kind, args::jsonb, 3, 1, 'default', 'available', now() - interval '1 day' FROM (VALUES `+bad+`) bad (kind, args)`)
		require.NoError(t, err)
	}
	stop := run(t, pool, Options{Every: 2 * time.Second, Reservations: reservation.NewService(postgres.NewReservations(pool), reservation.TokenKeys{})})
	defer stop()
	require.Eventually(t, func() bool { return count(t, pool, stillHeld) == 0 }, patience, 20*time.Millisecond)
	const waiting = `SELECT count(*) FROM river_job WHERE max_attempts = 3 AND kind = 'of_another_release' AND array_length(errors, 1) > 0 AND state IN ('retryable', 'discarded')`
	require.Eventually(t, func() bool { return count(t, pool, waiting) == 1 }, patience, 20*time.Millisecond, "it is on record")
	stop()
}

// However often processes are started anew, and however long none ran, there is one sweep for each period in which one
// runs, and none is made up for: the first process to come sweeps once.
//
// Requirements: R55. Cases: JO-03.
func TestRestartsNeitherStopNorPileUpSweeps(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
	require.NoError(t, err)
	opts := sweepOpts(Every)
	opts.ScheduledAt = time.Now().Add(-24 * time.Hour) // the last one, a day ago
	last, err := client.Insert(t.Context(), SweepArgs{}, &opts)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `UPDATE river_job SET state = 'completed', finalized_at = scheduled_at, created_at = scheduled_at WHERE id = $1`, last.Job.ID)
	require.NoError(t, err)
	service := reservation.NewService(postgres.NewReservations(pool), reservation.TokenKeys{})
	since := time.Now()
	for restart := range 4 {
		dueHolds := `SELECT count(*) FROM river_job WHERE kind = 'sweep_reservations' AND state = 'completed' AND created_at > now() - interval '1 hour'`
		stop := run(t, pool, Options{Reservations: service})
		require.Eventually(t, func() bool { return count(t, pool, dueHolds) >= 1 }, patience, 20*time.Millisecond, "start %d", restart)
		stop()
		periods := int(time.Since(since)/(Every/2)) + 2 // a slot is half a period
		require.LessOrEqual(t, count(t, pool, dueHolds), periods)
	}
}
