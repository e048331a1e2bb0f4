package locking

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// runs records which node ran when, within a bubble's time.
type runs struct {
	mu   sync.Mutex
	list []run
}

type run struct {
	node string
	at   time.Duration // since the bubble's beginning, which is midnight
}

func (r *runs) add(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, run{node, time.Since(midnight)})
}

func (r *runs) all() []run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// times are the moments of all runs, in order.
func (r *runs) times() []time.Duration {
	var times []time.Duration
	for _, one := range r.all() {
		times = append(times, one.at)
	}
	slices.Sort(times)
	return times
}

// midnight is when a bubble begins.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// shared is the configuration of tests in which a Memory plays the backend that all nodes share.
var shared = Config{Backend: BackendMemory, SingleNode: true}

// audit is a job that takes 5 ms each 10 s.
func audit(hint Hint) Job {
	return Job{ID: "audit", Interval: 10 * time.Second, Hint: hint, Expected: time.Second, Run: func(context.Context) error { after(5 * time.Millisecond); return nil }}
}

// journal is a log that is read while it is written.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// node is one process's scheduler of one job.
type node struct {
	*Scheduler

	log  journal
	stop context.CancelFunc
	over chan struct{}
}

// start starts the job on a node of that name and records its runs.
func start(t *testing.T, name string, l Locker, c Config, job Job, r *runs) *node {
	t.Helper()
	n := prepare(t, name, l, c, job, r)
	n.begin(t)
	return n
}

func prepare(t *testing.T, name string, l Locker, c Config, job Job, r *runs) *node {
	t.Helper()
	work := job.Run
	job.Run = func(ctx context.Context) error {
		r.add(name)
		return work(ctx)
	}
	n := &node{over: make(chan struct{})}
	var err error
	n.Scheduler, err = NewScheduler(SchedulerOptions{Jobs: []Job{job}, Locker: l, Config: c, Log: slog.New(slog.NewTextHandler(&n.log, nil))})
	require.NoError(t, err)
	return n
}

func (n *node) begin(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	n.stop = cancel
	go func() {
		defer close(n.over)
		n.Run(ctx)
	}()
}

// end stops the node and returns when it has stopped.
func (n *node) end() {
	n.stop()
	<-n.over
}

func (n *node) status() Status { return n.Jobs()[0] }

// A job that is of the process itself runs on each, and never touches the lock.
//
// Requirements: L28, L29.
func TestNodeLocalRunsOnEveryNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		untouched := &scripted{Locker: NewMemory(), try: func(context.Context, string, time.Duration) (*Handle, error) {
			t.Error("it asked")
			return nil, nil
		}}
		var r runs
		a, b := start(t, "a", untouched, shared, audit(NodeLocal), &r), start(t, "b", untouched, shared, audit(NodeLocal), &r)
		after(35 * time.Second)
		a.end()
		b.end()
		require.Equal(t, []time.Duration{10e9, 10e9, 20e9, 20e9, 30e9, 30e9}, r.times())
	})
}

// Two nodes, one run for each tick, also when a run takes 5 ms and the second node comes to the tick 200 ms later: the
// tick itself is claimed, not only the moment. The skipped tick is no failure and leaves no line in the log.
//
// Requirements: L28, L30, L31.
func TestRequireGlobalRunsOncePerTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		var r runs
		a := start(t, "a", m, shared, audit(RequireGlobal), &r)
		late := audit(RequireGlobal)
		late.Jitter = 200 * time.Millisecond
		b := prepare(t, "b", m, shared, late, &r)
		b.jitter = func(most time.Duration) time.Duration { return most }
		b.begin(t)
		after(105 * time.Second)
		a.end()
		b.end()

		times := r.times()
		require.Len(t, times, 10)
		for i, at := range times {
			require.Equal(t, time.Duration(i+1)*10*time.Second, at)
		}
		require.EqualValues(t, 10, a.status().Runs)
		require.EqualValues(t, 10, b.status().Skips)
		require.Zero(t, b.status().Runs+b.status().BackendErrors+b.status().Errors)
		require.Empty(t, b.log.String(), "it skips silently")
	})
}

// The control: without a lock the same two nodes run twice for each tick.
//
// Requirements: L31.
func TestControlWithoutALockRunsTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r runs
		a := start(t, "a", NewMemory(), shared, audit(RequireGlobal), &r)
		late := audit(RequireGlobal)
		late.Jitter = 200 * time.Millisecond
		b := prepare(t, "b", NewMemory(), shared, late, &r) // another memory is no lock
		b.jitter = func(most time.Duration) time.Duration { return most }
		b.begin(t)
		after(15 * time.Second)
		a.end()
		b.end()
		require.Equal(t, []time.Duration{10 * time.Second, 10200 * time.Millisecond}, r.times())
	})
}

// Clocks that differ by more than a run takes, either way, still make one run for each tick.
//
// Requirements: L20, L31.
func TestClocksThatDifferMakeOneRun(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{time.Millisecond, 700 * time.Millisecond, 4 * time.Second} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := NewMemory()
				var r runs
				a := start(t, "a", m, shared, audit(RequireGlobal), &r)
				behind := audit(RequireGlobal)
				behind.Jitter = skew
				b := prepare(t, "b", m, shared, behind, &r)
				b.jitter = func(most time.Duration) time.Duration { return most }
				b.begin(t)
				after(64 * time.Second)
				a.end()
				b.end()
				require.Len(t, r.times(), 6)
			})
		})
	}
}

// Several nodes at the very same moment: one of them runs.
//
// Requirements: L30, L31.
func TestNodesInStepMakeOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		var r runs
		var nodes []*node
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			nodes = append(nodes, start(t, name, m, shared, audit(RequireGlobal), &r))
		}
		after(1005 * time.Second)
		var skips int64
		for _, n := range nodes {
			n.end()
			skips += n.status().Skips
		}
		require.Len(t, r.times(), 100)
		require.EqualValues(t, 400, skips)
	})
}

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

// With no backend configured, a job that would prefer a lock runs on every node, as node_local does; with one it runs on
// one.
//
// Requirements: L12, L28, L32.
func TestPreferGlobal(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		locker Locker
		runs   int
	}{
		"no backend": {nil, 2},
		"a backend":  {NewMemory(), 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r runs
				var c Config
				if tt.locker != nil {
					c = shared
				}
				a, b := start(t, "a", tt.locker, c, audit(PreferGlobal), &r), start(t, "b", tt.locker, c, audit(PreferGlobal), &r)
				after(15 * time.Second)
				a.end()
				b.end()
				require.Len(t, r.times(), tt.runs)
			})
		})
	}
}

// A process with a job that must not run twice refuses to start where no lock is shared by all, and says what to do.
//
// Requirements: L12, L33.
func TestRequireGlobalNeedsASharedBackend(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		locker Locker
		config Config
		starts bool
	}{
		"none":                        {nil, Config{}, false},
		"memory":                      {NewMemory(), Config{Backend: BackendMemory}, false},
		"memory, and one process":     {NewMemory(), shared, true},
		"none, and one process":       {nil, Config{SingleNode: true}, false},
		"something that others share": {&named{NewMemory(), BackendRedis}, Config{}, true},
	}
	for name, tt := range tests {
		_, err := NewScheduler(SchedulerOptions{Jobs: []Job{audit(RequireGlobal)}, Locker: tt.locker, Config: tt.config, Log: silent})
		if tt.starts {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, ErrNoGlobalBackend, name)
		require.EqualError(t, err, `job "audit" is require_global, and no lock backend that all processes share is configured: `+
			`set backend to redis or pg, or to memory with single_node if there is one process only`, name)
	}
}

// named is a Locker that says it is another.
type named struct {
	Locker

	name string
}

func (n *named) Name() string { return n.name }

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

func tickName(at time.Time) string {
	return strings.TrimPrefix((&scheduled{Job: audit(NodeLocal)}).claimKey(audit(NodeLocal).tickAt(at)), "job:audit@")
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
