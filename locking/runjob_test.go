package locking

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A run that somebody asks for is under the lock of the ticks: it excludes them and each other on every node, and takes
// the place of none.
//
// Requirements: L30, L38.
func TestRunAskedForTakesTheSameLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		job := audit(RequireGlobal)
		job.Run = func(context.Context) error { after(3 * time.Second); return nil }
		m := NewMemory()
		var r runs
		a, b := start(t, "a", m, shared, job, &r), start(t, "b", m, shared, job, &r)
		after(8 * time.Second)
		asked := make(chan error, 1)
		go func() {
			ran, err := a.RunJob(t.Context(), "audit")
			if !ran {
				err = errors.New("it did not run")
			}
			asked <- err
		}()
		after(time.Second)
		for _, n := range []*node{a, b} {
			ran, err := n.RunJob(t.Context(), "audit")
			require.False(t, ran, "it runs already")
			require.NoError(t, err)
		}
		require.NoError(t, <-asked)
		after(14 * time.Second)
		a.end()
		b.end()
		require.Equal(t, []time.Duration{8 * time.Second, 20 * time.Second}, r.times(), "the tick at 10 s met the run that was asked for")
	})
}

// What becomes of a run that somebody asks for is told to them.
//
// Requirements: L02, L04.
func TestOutcomesOfARunAskedFor(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	l := &scripted{Locker: m}
	job := audit(RequireGlobal)
	failure := errors.New("no luck")
	job.Run = func(context.Context) error { return failure }
	n := prepare(t, "a", l, shared, job, &runs{})

	_, err := n.RunJob(t.Context(), "nonsense")
	require.ErrorIs(t, err, ErrUnknownJob)

	ran, err := n.RunJob(t.Context(), "audit")
	require.True(t, ran)
	require.ErrorIs(t, err, failure)
	require.Empty(t, m.held)

	l.try = failing
	ran, err = n.RunJob(t.Context(), "audit")
	require.False(t, ran)
	require.ErrorIs(t, err, ErrBackend)
	require.EqualValues(t, 1, n.status().BackendErrors)
	require.EqualValues(t, 1, n.status().Runs)
}

// What a job finds is no failure of the job: it is counted apart, stands in the log as an error, stays shown while later
// runs fail, and goes with the first run that finds nothing.
//
// Requirements: L28.
func TestFindingIsNoFailure(t *testing.T) {
	t.Parallel()
	job := audit(NodeLocal)
	var returned error
	job.Run = func(context.Context) error { return returned }
	n := prepare(t, "a", nil, Config{}, job, &runs{})
	run := func(err error) Status {
		returned = err
		ran, got := n.RunJob(t.Context(), "audit")
		require.True(t, ran)
		require.Equal(t, err, got)
		return n.status()
	}
	for _, step := range []struct {
		returned         error
		finding, failure string
		found, failed    int64
	}{
		{nil, "", "", 0, 0},
		{&FindingError{"two of one"}, "two of one", "", 1, 0},
		{errors.New("away"), "two of one", "away", 1, 1},
		{&FindingError{"still two"}, "still two", "", 2, 1},
		{nil, "", "", 2, 1},
	} {
		s := run(step.returned)
		require.Equal(t, []string{step.finding, step.failure}, []string{s.LastFinding, s.LastError})
		require.Equal(t, []int64{step.found, step.failed}, []int64{s.Findings, s.Errors})
	}
	require.Contains(t, n.log.String(), `level=ERROR msg="a job found what must not be" job=audit finding="two of one"`)
}

// A job without a lock runs once at a time in its process all the same.
//
// Requirements: L29.
func TestNodeLocalRunsOnceAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		job := audit(NodeLocal)
		job.Run = func(context.Context) error { after(15 * time.Second); return nil }
		var r runs
		n := start(t, "a", nil, Config{}, job, &r)
		after(12 * time.Second)
		ran, err := n.RunJob(t.Context(), "audit")
		require.False(t, ran)
		require.NoError(t, err)
		after(14 * time.Second) // 26 s: the first run is over
		ran, err = n.RunJob(t.Context(), "audit")
		require.True(t, ran)
		require.NoError(t, err)
		n.end()
		require.Equal(t, []time.Duration{10 * time.Second, 26 * time.Second}, r.times())
		require.EqualValues(t, 2, n.status().Skips, "the ticks at 30 and 40 s")
	})
}

// The list tells what was declared and configured, and how each job fares.
//
// Requirements: L28, L34, L36.
func TestJobsAreListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := Job{ID: "flag-cache", Interval: time.Minute, Jitter: time.Second, Hint: NodeLocal, Expected: time.Second, Run: func(context.Context) error { return nil }}
		c := shared
		c.Jobs = map[string]JobConfig{"audit": {Hint: PreferGlobal, Expected: 2 * time.Second}}
		s, err := NewScheduler(SchedulerOptions{Jobs: []Job{cache, audit(RequireGlobal)}, Locker: NewMemory(), Config: c, Log: silent})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); s.Run(ctx) }()
		after(25 * time.Second)

		list := s.Jobs()
		require.Equal(t, Status{
			ID: "flag-cache", Interval: time.Minute, Jitter: time.Second, Missed: MissedSkip, Hint: NodeLocal, Expected: time.Second,
			LockTTL: 2*time.Second + DefaultMargin, NextTick: midnight.Add(time.Minute),
		}, list[0])
		require.Equal(t, Status{
			ID: "audit", Interval: 10 * time.Second, Missed: MissedSkip, Hint: PreferGlobal, Expected: 2 * time.Second,
			LockTTL: 2*time.Second + DefaultMargin, NextTick: midnight.Add(30 * time.Second),
			LastStart: midnight.Add(20 * time.Second), LastEnd: midnight.Add(20*time.Second + 5*time.Millisecond), Runs: 2,
		}, list[1])
		cancel()
		<-over
		require.Zero(t, s.Jobs()[1].NextTick)
	})
}
