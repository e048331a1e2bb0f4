package locking

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Ticks are the same for every process, whenever it was started: whole multiples of the interval.
//
// Requirements: L31.
func TestTicksAreWholeMultiples(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{10 * time.Millisecond, time.Second, 7 * time.Minute, 24 * time.Hour} {
		job := Job{Interval: interval}
		for _, at := range []time.Time{midnight, midnight.Add(interval / 3), midnight.Add(12345678 * time.Millisecond), time.UnixMilli(-5), time.UnixMilli(0)} {
			tick := job.tickAt(at)
			require.False(t, job.start(tick).After(at))
			require.True(t, job.start(tick+1).After(at))
			require.Equal(t, tick, job.tickAt(job.start(tick)))
			require.Equal(t, tick-1, job.tickAt(job.start(tick).Add(-time.Millisecond)))
		}
	}
	require.Equal(t, midnight, Job{Interval: 24 * time.Hour}.start(Job{Interval: 24 * time.Hour}.tickAt(midnight.Add(time.Hour))), "a daily job ticks at midnight in UTC")
}

// Each node waits a random part of the jitter, so that they do not all come at once.
//
// Requirements: L35.
func TestJitterSpreadsTheNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		job := audit(NodeLocal)
		job.Jitter = 4 * time.Second
		var r runs
		var nodes []*node
		for range 20 {
			nodes = append(nodes, start(t, "n", nil, Config{}, job, &r))
		}
		after(15 * time.Second)
		for _, n := range nodes {
			n.end()
		}
		times, different := r.times(), map[time.Duration]bool{}
		for _, at := range times {
			require.GreaterOrEqual(t, at, 10*time.Second)
			require.LessOrEqual(t, at, 14*time.Second)
			different[at] = true
		}
		require.Len(t, times, 20)
		require.Greater(t, len(different), 10)
	})
}

// What becomes of ticks at which the process was busy: left out, or made up for by one run however many they are.
//
// Requirements: L28. Cases: JO-03.
func TestMissedTicks(t *testing.T) {
	t.Parallel()
	tests := map[Missed][]time.Duration{
		MissedSkip:    {10e9, 50e9, 60e9},
		MissedRunOnce: {0, 10e9, 42e9, 50e9, 60e9}, // at the start too
	}
	for missed, want := range tests {
		t.Run(string(missed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				job, first := audit(RequireGlobal), true
				job.Missed = missed
				job.Run = func(context.Context) error {
					if time.Since(midnight) >= 10*time.Second && first {
						first = false
						after(32 * time.Second)
					}
					return nil
				}
				var r runs
				n := start(t, "a", NewMemory(), shared, job, &r)
				after(65 * time.Second)
				n.end()
				require.Equal(t, want, r.times())
				require.Positive(t, n.status().MissedTicks)
			})
		})
	}
}

// A job that makes up for missed ticks runs after each start, but not again what another node has run already.
//
// Requirements: L31. Cases: JO-03.
func TestCatchUpAfterAStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		daily := audit(RequireGlobal)
		daily.Interval, daily.Missed = 24*time.Hour, MissedRunOnce
		m := NewMemory()
		var r runs
		after(9 * time.Hour)
		a := start(t, "a", m, shared, daily, &r)
		after(time.Hour)
		b := start(t, "b", m, shared, daily, &r)
		after(time.Hour)
		b.end()
		b = start(t, "b", m, shared, daily, &r)
		after(48 * time.Hour)
		a.end()
		b.end()
		require.Equal(t, []time.Duration{9 * time.Hour, 24 * time.Hour, 48 * time.Hour}, r.times())
	})
}

// A tick that somebody wakes up too late for is missed: it might have been run and its claim given up.
//
// Requirements: L31.
func TestTickIsNotRunTooLate(t *testing.T) {
	t.Parallel()
	skip, once := audit(RequireGlobal), audit(RequireGlobal)
	skip.Missed, once.Missed = MissedSkip, MissedRunOnce
	wide := skip
	wide.Jitter = 4900 * time.Millisecond
	tick := skip.tickAt(midnight)
	for late, want := range map[time.Duration][3]bool{
		0: {true, true, true}, 4999 * time.Millisecond: {true, true, true}, 5 * time.Second: {false, true, true},
		7999 * time.Millisecond: {false, true, true}, 8 * time.Second: {false, false, false}, time.Minute: {false, false, false},
	} {
		now := midnight.Add(late)
		require.Equal(t, want, [3]bool{skip.due(tick, now), once.due(tick, now), wide.due(tick, now)}, late)
	}
}

// The clock is looked at again and again: set back a little, it does not bring a tick twice in a row; set back or ahead
// by much, the job goes on from there.
//
// Requirements: L31.
func TestFollowingTick(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		missed    Missed
		last      int64
		now       time.Duration // since tick 100
		following int64
	}{
		"in its slot":                    {MissedSkip, 100, 5 * time.Second, 101},
		"set back across the tick":       {MissedSkip, 100, -time.Millisecond, 101},
		"set back by an hour":            {MissedSkip, 100, -time.Hour, -259},
		"set ahead by an hour":           {MissedSkip, 100, time.Hour, 461},
		"nothing to make up for":         {MissedRunOnce, 100, 5 * time.Second, 101},
		"a tick to make up for":          {MissedRunOnce, 99, 5 * time.Second, 100},
		"many to make up for":            {MissedRunOnce, 7, 5 * time.Second, 100},
		"too late to make up for it now": {MissedRunOnce, 99, 9 * time.Second, 101},
	}
	for name, tt := range tests {
		j := &scheduled{Job: Job{Interval: 10 * time.Second, Missed: tt.missed}}
		require.Equal(t, tt.following, j.following(tt.last, j.start(100).Add(tt.now)), name)
	}
}
