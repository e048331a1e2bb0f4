package locking

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
