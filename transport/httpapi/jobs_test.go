package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/locking"
)

// testJobs are jobs that end as their ids say, under a lock that a test can take away.
type testJobs struct {
	*locking.Scheduler

	locker *fragile
	counts locking.Counts
	begun  chan struct{} // by the job slow
	finish chan struct{} // ends it
}

func (j *testJobs) Backend() (name string, contentions, failures int64) {
	return j.locker.Name(), j.counts.Contentions(), j.counts.BackendFailures()
}

// fragile is a lock backend that can break.
type fragile struct {
	locking.Locker

	broken bool
}

func (f *fragile) Try(ctx context.Context, key string, ttl time.Duration) (*locking.Handle, error) {
	if f.broken {
		return nil, locking.ErrBackend
	}
	return f.Locker.Try(ctx, key, ttl)
}

func newTestJobs(tb testing.TB) *testJobs {
	tb.Helper()
	j := &testJobs{locker: &fragile{Locker: locking.NewMemory()}, begun: make(chan struct{}), finish: make(chan struct{})}
	job := func(id string, run func(ctx context.Context) error) locking.Job {
		return locking.Job{
			ID: id, Interval: time.Hour, Jitter: time.Second, Hint: locking.RequireGlobal, Expected: 30 * time.Second, Missed: locking.MissedRunOnce, Run: run,
		}
	}
	var err error
	j.Scheduler, err = locking.NewScheduler(locking.SchedulerOptions{
		Jobs: []locking.Job{
			job("plain", func(context.Context) error { return nil }),
			job("finds", func(context.Context) error { return &locking.FindingError{Text: "There are two of one."} }),
			job("fails", func(context.Context) error { return errors.New("the password of the database is wrong") }),
			job("slow", func(context.Context) error { j.begun <- struct{}{}; <-j.finish; return nil }),
		},
		Locker: locking.Observed(j.locker, &j.counts),
		Config: locking.Config{Backend: locking.BackendMemory, SingleNode: true}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(tb, err)
	return j
}

// The list says how each job fares. Why one failed is for those who run the service, what one found for everybody.
//
// Requirements: L04, L28, L34.
func TestJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ran := w.post("acme:operator", "/v1/jobs/plain/run", "").is(200, "")
	require.Equal(t, []string{"plain", "require_global", "3600000", "1000", "30000", "41000", "run_once", "1", "false"}, []string{
		ran.text("id"), ran.text("hint"), ran.text("interval_ms"), ran.text("jitter_ms"), ran.text("expected_ms"),
		ran.text("lock_ttl_ms"), ran.text("missed_policy"), ran.text("runs"), ran.text("last_failed"),
	})
	require.NotEmpty(t, ran.text("last_ended_at"))

	failed := w.post("acme:operator", "/v1/jobs/fails/run", "").is(200, "")
	require.Equal(t, []string{"true", "1"}, []string{failed.text("last_failed"), failed.text("failures")})
	require.NotContains(t, string(failed.body), "password")
	require.NotContains(t, string(w.get("acme:operator", "/v1/jobs").is(200, "").body), "password")
	found := w.post("acme:operator", "/v1/jobs/finds/run", "").is(200, "")
	require.Equal(t, []string{"false", "There are two of one.", "1"}, []string{found.text("last_failed"), found.text("last_finding"), found.text("findings")})

	list := w.get("acme:operator,platform", "/v1/jobs").is(200, "")
	require.Equal(t, []string{"memory", "plain", "finds", "fails", "the password of the database is wrong", "slow"}, []string{
		list.text("lock_backend"), list.text("items.0.id"), list.text("items.1.id"), list.text("items.2.id"), list.text("items.2.last_error"), list.text("items.3.id"),
	})
	w.post("acme:operator", "/v1/jobs/nonsense/run", "").is(404, "not_found")
	w.post("acme:operator", "/v1/jobs/NONSENSE/run", "").is(404, "not_found")
}

// A job that runs already, here or on another process, is not run a second time; a broken backend is no such thing.
//
// Requirements: L02, L04, L30.
func TestJobRunsOnceAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := make(chan *answer, 1)
	go func() { first <- w.post("acme:operator", "/v1/jobs/slow/run", "") }()
	<-w.jobs.begun
	busy := w.post("acme:operator", "/v1/jobs/slow/run", "").is(409, "job_running")
	require.Contains(t, []string{"1", "2", "3"}, busy.header.Get("Retry-After"))
	require.Equal(t, "true", w.get("acme:operator", "/v1/jobs").text("items.3.running"))
	require.Empty(t, w.get("acme:operator", "/v1/jobs").text("items.3.last_ended_at"))
	w.jobs.finish <- struct{}{}
	(<-first).is(200, "")

	elsewhere, err := w.jobs.locker.Try(t.Context(), "job:plain", time.Minute)
	require.NoError(t, err)
	w.post("acme:operator", "/v1/jobs/plain/run", "").is(409, "job_running")
	require.NoError(t, w.jobs.locker.Release(t.Context(), elsewhere))

	w.jobs.locker.broken = true
	a := w.post("acme:operator", "/v1/jobs/plain/run", "").is(503, "locks_unavailable")
	require.Contains(t, []string{"1", "2", "3"}, a.header.Get("Retry-After"))
	w.jobs.locker.broken = false
	list := w.get("acme:operator", "/v1/jobs").is(200, "")
	require.Equal(t, []string{"1", "1", "0"}, []string{list.text("contentions"), list.text("backend_failures"), list.text("items.0.runs")})
}
