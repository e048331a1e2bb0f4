package locking

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A backend that takes almost a whole interval to answer makes ticks be missed, and none be run twice.
//
// Requirements: L31.
func TestSlowBackendRunsNoTickTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		slow := &scripted{Locker: m}
		slow.try = func(ctx context.Context, key string, ttl time.Duration) (*Handle, error) {
			after(9500 * time.Millisecond)
			return m.Try(ctx, key, ttl)
		}
		var r runs
		a, b := start(t, "a", m, shared, audit(RequireGlobal), &r), start(t, "b", slow, shared, audit(RequireGlobal), &r)
		after(95 * time.Second)
		a.end()
		b.end()
		require.Equal(t, []time.Duration{10e9, 30e9, 50e9, 70e9, 90e9}, r.times(), "the slow one has the lock at the others")
		require.Zero(t, b.status().Runs)
		require.Positive(t, b.status().MissedTicks)
	})
}

// A broken backend is logged and counted, and the job is left out: on no account does it run without its lock, whether
// the hint requires or prefers one.
//
// Requirements: L30, L32.
func TestBrokenBackendLeavesTheJobOut(t *testing.T) {
	t.Parallel()
	for _, hint := range []Hint{RequireGlobal, PreferGlobal} {
		t.Run(string(hint), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var back atomic.Bool
				m := NewMemory()
				l := &scripted{Locker: m}
				l.try = func(ctx context.Context, key string, ttl time.Duration) (*Handle, error) {
					if back.Load() {
						return m.Try(ctx, key, ttl)
					}
					return nil, ErrBackend
				}
				var r runs
				n := start(t, "a", l, shared, audit(hint), &r)
				after(25 * time.Second)
				require.Empty(t, r.times())
				require.EqualValues(t, 2, n.status().BackendErrors)
				require.Contains(t, n.status().LastError, ErrBackend.Error())
				require.Zero(t, n.status().Skips)
				require.Contains(t, n.log.String(), "level=ERROR")

				back.Store(true)
				after(10 * time.Second)
				n.end()
				require.Len(t, r.times(), 1, "as soon as it is back")
				require.Empty(t, n.status().LastError)
			})
		})
	}
}

// The lock lives as long as the longest run that is expected, and a margin. The expectation is the job's, and the
// operator's where given.
//
// Requirements: L34, L35, L36.
func TestLockOutlivesTheExpectedRun(t *testing.T) {
	t.Parallel()
	job := audit(RequireGlobal)
	job.Jitter = 300 * time.Millisecond
	tests := map[string]struct {
		config Config
		ttl    time.Duration
	}{
		"as declared":       {Config{}, time.Second + 300*time.Millisecond + DefaultMargin},
		"another margin":    {Config{Margin: time.Second}, 2300 * time.Millisecond},
		"more jitter":       {Config{Margin: time.Second, Jobs: map[string]JobConfig{"audit": {Jitter: 2 * time.Second}}}, 4 * time.Second},
		"a slower database": {Config{Margin: time.Second, Jobs: map[string]JobConfig{"audit": {Expected: time.Minute}}}, 61300 * time.Millisecond},
	}
	for name, tt := range tests {
		tt.config.Backend, tt.config.SingleNode = BackendMemory, true
		s, err := NewScheduler(SchedulerOptions{Jobs: []Job{job}, Locker: NewMemory(), Config: tt.config, Log: silent})
		require.NoError(t, err, name)
		require.Equal(t, tt.ttl, s.Jobs()[0].LockTTL, name)
	}
}

// A run longer than its lock's time is a wrong declaration and reported as such, while it goes on; its lock is renewed,
// so that nobody else begins.
//
// Requirements: L06, L34.
func TestOverrunIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := audit(RequireGlobal)
		slow.Run = func(ctx context.Context) error { after(95 * time.Second); return ctx.Err() }
		m := NewMemory()
		var r runs
		a, b := start(t, "a", m, shared, slow, &r), start(t, "b", m, shared, slow, &r)
		after(60 * time.Second) // the first tick is at 10 s
		require.EqualValues(t, 1, a.status().Overruns+b.status().Overruns, "it is still running")
		require.Contains(t, a.log.String()+b.log.String(), "correct its expected run time")
		after(48 * time.Second) // it ended at 105 s, and the next tick is at 110 s
		require.Len(t, r.times(), 1)
		require.Zero(t, a.status().Lost+b.status().Lost+a.status().Errors+b.status().Errors)
		a.end()
		b.end()
	})
}

// A job whose lock is lost has its context cancelled, and it counts; the scheduler goes on.
//
// Requirements: L06.
func TestLostLockEndsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &scripted{Locker: NewMemory(), renew: func(context.Context) error { return ErrNotOwner }}
		job := audit(RequireGlobal)
		causes := make(chan error, 1)
		job.Run = func(ctx context.Context) error {
			ends(ctx)
			causes <- context.Cause(ctx)
			return ctx.Err()
		}
		var r runs
		n := start(t, "a", l, shared, job, &r)
		after(19 * time.Second)
		require.ErrorIs(t, <-causes, ErrNotOwner)
		require.EqualValues(t, 1, n.status().Lost, n.log.String())
		n.end()
	})
}

// A node that dies in the middle of a run leaves the tick to others, and later ticks as well.
//
// Requirements: L13, L14, L31.
func TestDeadNodeDoesNotKeepTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		dead := take(t, m, "job:audit", 11*time.Second) // what a node that died at its beginning has left behind
		take(t, m, "job:audit@"+tickName(midnight.Add(10*time.Second)), 11*time.Second)
		require.Equal(t, "job:audit", dead.Key())
		var r runs
		n := start(t, "b", m, shared, audit(RequireGlobal), &r)
		after(25 * time.Second)
		n.end()
		require.Equal(t, []time.Duration{20 * time.Second}, r.times())
	})
}

// A job that fails or panics runs again at its next tick, and its failure is told.
//
// Requirements: L30.
func TestFailureEndsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		job, n := audit(RequireGlobal), 0
		job.Run = func(context.Context) error {
			switch n++; n {
			case 1:
				return errors.New("no luck")
			case 2:
				panic("no sense")
			}
			return nil
		}
		var r runs
		a := start(t, "a", NewMemory(), shared, job, &r)
		after(15 * time.Second)
		require.Equal(t, "no luck", a.status().LastError)
		after(10 * time.Second)
		require.Equal(t, "the job panicked: no sense", a.status().LastError)
		require.Contains(t, a.log.String(), "TestFailureEndsNothing", "where it was")
		after(10 * time.Second)
		a.end()
		require.Len(t, r.times(), 3)
		require.EqualValues(t, 2, a.status().Errors)
		require.Empty(t, a.status().LastError)
	})
}

// A stop is told to the run under way, waited for, and gives the tick back.
//
// Requirements: L06.
func TestStopWaitsForTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		job, m := audit(RequireGlobal), NewMemory()
		job.Run = func(ctx context.Context) error {
			<-ctx.Done()
			after(2 * time.Second) // tidying up
			return ctx.Err()
		}
		var r runs
		n := start(t, "a", m, shared, job, &r)
		after(12 * time.Second)
		require.True(t, n.status().Running)
		n.end()
		require.False(t, n.status().Running)
		require.Equal(t, 14*time.Second, time.Since(midnight))
		require.Empty(t, m.held)
	})
}
