//go:build gates && unix

package concurrency_test

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

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
