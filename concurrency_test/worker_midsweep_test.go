//go:build gates && unix

package concurrency_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/reservation"
)

// sweepLock is what every move to expired waits for in the tests below; a test that holds it stops sweeps in the middle.
const sweepLock = 7_002

// stopSweeps makes every move to expired wait for the session until it unlocks.
func (w *world) stopSweeps() *session {
	w.t.Helper()
	w.exec(fmt.Sprintf(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock_shared(%d); RETURN NEW; END $$`, sweepLock))
	w.exec(`CREATE TRIGGER wait BEFORE UPDATE ON reservations FOR EACH ROW WHEN (NEW.state = 'expired') EXECUTE FUNCTION wait()`)
	return w.session().do(`SELECT pg_advisory_lock($1)`, sweepLock)
}

func (s *session) letSweepsGoOn() { s.do(`SELECT pg_advisory_unlock($1)`, sweepLock) }

// patient lets a sweep wait as long as a test needs.
var patient = map[string]string{"lock_timeout": "0", "statement_timeout": "120000"}

// killedInMidSweep kills a worker that is expiring two dead holds, and returns these when nothing of it is left.
func (w *world) killedInMidSweep() []reservation.ID {
	w.t.Helper()
	w.servers(2)
	ids := []reservation.ID{w.held("a").Reservation.ID, w.held("b").Reservation.ID}
	w.deadlineIn(-time.Second)
	stop := w.stopSweeps()
	killed := w.worker("killed", patient)
	w.someoneWaitsFor(stop.pid())
	killed.kill()
	stop.letSweepsGoOn()
	killed.forgotten()
	return ids
}

// A worker is killed in the middle of a sweep: nothing of that sweep is left, and its job, which stays "running" until
// somebody rescues it, keeps no later one from sweeping.
//
// Requirements: R56, R64. Cases: JO-01. Faults: F-C1, F-J2.
func TestWorkerKilledInMidSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.killedInMidSweep()
	for _, id := range ids {
		require.Equal(t, "held", w.state(id))
	}
	require.Zero(t, one[int](w, `SELECT count(*) FROM events WHERE type = 'reservation.expired'`))
	stuck := one[int64](w, `SELECT min(id) FROM river_job WHERE kind = 'sweep_reservations' AND state = 'running'`)

	w.worker("next", nil)
	w.sweptByWorker(ids...)
	w.sweptByWorker(w.abandoned("later"))
	require.Equal(t, "running", one[string](w, `SELECT state::text FROM river_job WHERE id = $1`, stuck), "nobody has rescued it yet")
	w.sound()
}

// Ten jobs are running when their workers are killed. A worker that is alive rescues them: each runs again and is done, none
// stays "running", and what they do is done once. A sweep has one attempt, and the next one does its work.
//
// Requirements: R64. Cases: JO-01. Faults: F-J2.
func TestJobsOfKilledWorkersRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.killedInMidSweep()
	require.Equal(t, 1, w.sweepJobs("running"))
	w.exec(`INSERT INTO river_job (kind, args, max_attempts, priority, queue, state, attempt, attempted_by, attempted_at)
		SELECT 'make_month_partitions', '{}', 3, 1, 'default', 'running', 1, ARRAY ['killed as well'], now()
		FROM generate_series(1, 10 - (SELECT count(*)::int FROM river_job WHERE state = 'running'))`)
	stuck := one[[]int64](w, `SELECT array_agg(id) FROM river_job WHERE state = 'running'`)
	require.Len(t, stuck, 10)
	tables := one[int](w, `SELECT count(*) FROM pg_class WHERE relispartition`)
	w.exec(`UPDATE river_job SET attempted_at = now() - interval '3 minutes' WHERE state = 'running'`) // so much time passes

	w.worker("alive", nil)
	w.sweptByWorker(ids...)
	require.Eventually(t, func() bool {
		return one[int](w, `SELECT count(*) FROM river_job WHERE id = ANY ($1) AND state IN ('completed', 'discarded')`, stuck) == 10
	}, 2*election, 50*time.Millisecond, "some are running for ever")
	require.Equal(t, 9, one[int](w, `SELECT count(*) FROM river_job WHERE id = ANY ($1) AND state = 'completed' AND attempt = 2`, stuck))
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM river_job WHERE id = ANY ($1) AND state = 'discarded' AND kind = 'sweep_reservations'`, stuck))
	require.Equal(t, tables, one[int](w, `SELECT count(*) FROM pg_class WHERE relispartition`))
	w.sound()
}

// A worker is frozen in the middle of a sweep. The server ends its transaction, the other worker does the work, and the
// frozen one, when it wakes up, writes nothing of what it was at and works on.
//
// Requirements: R56, R64. Faults: F-C2, F-J3.
func TestWorkerFrozenInMidSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	id := w.abandoned("a")
	stop := w.stopSweeps()
	frozen := w.worker("frozen", map[string]string{"lock_timeout": "0", "statement_timeout": "120000", "idle_in_transaction_session_timeout": "1000"})
	w.someoneWaitsFor(stop.pid())
	frozen.signal(syscall.SIGSTOP)
	stop.letSweepsGoOn()
	require.Eventually(t, func() bool { // its transaction is over, and the row is free again
		return one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'frozen' AND xact_start IS NOT NULL`) == 0
	}, patience, 10*time.Millisecond)
	require.Equal(t, "held", w.state(id))

	other := w.worker("other", nil)
	w.sweptByWorker(id)
	frozen.signal(syscall.SIGCONT)
	w.sweptByWorker(w.abandoned("b"))
	for _, p := range []*process{frozen, other} {
		p.signal(syscall.SIGTERM)
		require.Zero(t, p.exits())
	}
	require.Zero(t, w.sweepJobs("running"))
	w.endedOnce(id, "expired", "sweep")
	w.sound()
}

// Asked to stop in the middle of a sweep, a worker finishes it; one that cannot finish is broken off after a few
// seconds, and leaves nothing half. Both end in order.
//
// Requirements: R64. Faults: F-C3.
func TestWorkerAskedToStopInMidSweep(t *testing.T) {
	t.Parallel()
	for _, finishes := range []bool{true, false} {
		t.Run(fmt.Sprint("finishes: ", finishes), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			id := w.abandoned("a")
			stop := w.stopSweeps()
			worker := w.worker("worker", patient)
			w.someoneWaitsFor(stop.pid())
			worker.signal(syscall.SIGTERM)
			require.Equal(t, "stopping", worker.hear())
			if finishes {
				stop.letSweepsGoOn()
				require.Zero(t, worker.exits())
				w.endedOnce(id, "expired", "sweep")
				require.Equal(t, 1, w.sweepJobs("completed"))
			} else {
				require.Zero(t, worker.exits())
				stop.letSweepsGoOn()
				worker.forgotten()
				require.Equal(t, "held", w.state(id))
			}
			require.Zero(t, w.sweepJobs("running"))
			w.sound()
		})
	}
}
