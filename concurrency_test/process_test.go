//go:build gates && unix

package concurrency_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/sweeper"
)

// everyEnv is how often a worker sweeps.
const everyEnv = "CONCURRENCY_TEST_EVERY"

// election bounds the wait for another worker to take over from one that was killed. River settles its terms itself: a
// leader's lasts 15 seconds, and the others look every 5 to 6; neither can be configured.
const election = 60 * time.Second

// sweepProgram is a worker process: it runs until it is asked to stop.
func sweepProgram(ctx context.Context, c *child) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	every, err := time.ParseDuration(os.Getenv(everyEnv))
	if err != nil {
		return err
	}
	pool, err := postgres.Open(ctx, os.Getenv(urlEnv), postgres.PoolOptions{MaxConns: 4, Application: os.Getenv(nameEnv)})
	if err != nil {
		return err
	}
	defer pool.Close()
	worker, err := sweeper.New(pool, sweeper.Options{
		Reservations: reservation.NewService(postgres.NewReservations(pool), reservation.TokenKeys{}),
		Partitions:   postgres.NewPartitions(pool),
		Log:          slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Every:        every,
	})
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		c.say("stopping")
	}()
	return worker.Run(ctx)
}

// worker starts a worker process that sweeps every two seconds.
func (w *world) worker(name string, settings map[string]string) *process {
	w.t.Helper()
	return w.start("sweep", name, w.with(settings), map[string]string{everyEnv: "2s"})
}

// leader returns the id of the worker that River has elected, or "" while there is none.
func (w *world) leader() string {
	w.t.Helper()
	return one[string](w, `SELECT coalesce((SELECT leader_id FROM river_leader), '')`)
}

// elected waits until there is a leader other than the given one.
func (w *world) elected(other string) string {
	w.t.Helper()
	require.Eventually(w.t, func() bool { l := w.leader(); return l != "" && l != other }, election, 20*time.Millisecond, "nobody was elected")
	return w.leader()
}

// abandoned makes a hold whose deadline has passed.
func (w *world) abandoned(name string) reservation.ID {
	w.t.Helper()
	id := w.held(name).Reservation.ID
	w.expire(id)
	return id
}

// sweptByWorker waits until workers have expired the holds, and asserts that each was moved once.
func (w *world) sweptByWorker(ids ...reservation.ID) {
	w.t.Helper()
	for _, id := range ids {
		require.Eventually(w.t, func() bool { return w.state(id) == "expired" }, election, 20*time.Millisecond, "nobody swept")
		w.endedOnce(id, "expired", "sweep")
	}
}

// sweepJobs counts the sweep jobs in a state.
func (w *world) sweepJobs(state string) int {
	w.t.Helper()
	return one[int](w, `SELECT count(*) FROM river_job WHERE kind = 'sweep_reservations' AND state::text = $1`, state)
}

// One worker: what is due at its start is swept, and what becomes due while it runs; asked to stop it ends in order and
// gives up its office, so that the next one goes on at once.
//
// Requirements: R55, R56, R64
func TestOneWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	before := w.abandoned("before")
	first := w.worker("first", nil)
	w.sweptByWorker(before)
	w.sweptByWorker(w.abandoned("meanwhile"))
	first.signal(syscall.SIGTERM)
	require.Zero(t, first.exits())
	require.Empty(t, w.leader())
	require.Zero(t, w.sweepJobs("running"))
	require.Equal(t, 1, one[int](w, free))

	after := w.abandoned("after")
	second := w.worker("second", nil)
	w.sweptByWorker(after)
	second.signal(syscall.SIGTERM)
	require.Zero(t, second.exits())
	require.Zero(t, w.sweepJobs("discarded"))
	w.sound()
}

// The queue's tables stand beside the product's, in the same schema and so in the same backup.
//
// Requirements: R64
func TestQueueIsInOurSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, []string{"river_job", "river_leader"}, one[[]string](w, `SELECT array_agg(c.relname::text ORDER BY c.relname) FROM pg_class c
		WHERE c.relname IN ('river_job', 'river_leader') AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'reservations'::regclass)`))
	require.Equal(t, 1, one[int](w, `SELECT count(DISTINCT relnamespace) FROM pg_class WHERE relname LIKE 'river\_%' AND relkind = 'r'`))
}

// Two workers move each hold once. When the leader is killed, the other goes on; until then dead holds are sold all the
// same.
//
// Requirements: R55, R61, R64. Cases: JO-01. Faults: F-J1.
func TestTwoWorkersAndTheLeaderKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(6)
	first := w.worker("first", nil)
	leader := w.elected("")
	w.worker("second", nil)
	var ids []reservation.ID
	for i := range 6 {
		ids = append(ids, w.held(fmt.Sprint("both-", i)).Reservation.ID)
	}
	w.deadlineIn(-time.Second)
	w.sweptByWorker(ids...)

	require.Equal(t, leader, w.leader())
	first.kill()
	orphan := w.held("orphan").Reservation
	for i := range 5 {
		w.held(fmt.Sprint("in the way ", i))
	}
	w.expire(orphan.ID)
	sold := w.reserve(w.ctx, request("buyer")) // nobody sweeps at this moment, or somebody does: it is sold
	require.Equal(t, allocation.OutcomeReserved, sold.Code)
	require.Equal(t, orphan.Server.ID, sold.Reservation.Server.ID)
	w.expire(sold.Reservation.ID)
	w.sweptByWorker(sold.Reservation.ID)
	require.NotEqual(t, leader, w.elected(leader))
	w.sound()
}

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

// A worker is killed in the middle of a sweep: nothing of that sweep is left, and its job, which stays "running" until
// somebody rescues it, keeps no later one from sweeping.
//
// Requirements: R56, R64. Cases: JO-01. Faults: F-C1, F-J2.
func TestWorkerKilledInMidSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(2)
	ids := []reservation.ID{w.held("a").Reservation.ID, w.held("b").Reservation.ID}
	w.deadlineIn(-time.Second)
	stop := w.stopSweeps()
	killed := w.worker("killed", patient)
	w.someoneWaitsFor(stop.pid())
	killed.kill()
	stop.letSweepsGoOn()
	killed.forgotten()
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
	w.servers(2)
	ids := []reservation.ID{w.held("a").Reservation.ID, w.held("b").Reservation.ID}
	w.deadlineIn(-time.Second)
	stop := w.stopSweeps()
	killed := w.worker("killed", patient)
	w.someoneWaitsFor(stop.pid())
	killed.kill()
	stop.letSweepsGoOn()
	killed.forgotten()
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
