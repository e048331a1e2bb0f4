//go:build gates

package concurrency_test

import (
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/store/postgres/gate"
)

// summary is what all rounds of a run were about.
type summary struct {
	w       *world
	seed    uint64
	rounds  int
	looks   int
	last    *history
	answers map[string]int
	armed   map[gate.Place]int
	reached map[gate.Place]int
	met     map[fault]int
}

// count takes in what the clients of one round were told.
func (c *summary) count(records []record) {
	c.rounds++
	for i := range records {
		r := &records[i]
		c.answers[string(r.Op)+" "+r.Answer]++
		if r.Fault == "" {
			continue
		}
		c.armed[r.Place]++
		if r.Reached {
			c.reached[r.Place]++
			c.met[r.Fault]++
		}
	}
}

// missing are the places at which no call has met a fault yet, and the faults that none has met.
func (c *summary) missing() (what []string) {
	for _, p := range gate.Places() {
		if c.reached[p] == 0 {
			what = append(what, string(p))
		}
	}
	for _, f := range faults {
		if c.met[f] == 0 {
			what = append(what, string(f))
		}
	}
	return what
}

// enough demands that the run was about something, and says about what.
func (c *summary) enough() {
	t := c.w.t
	t.Helper()
	for _, rare := range []string{"reserve reserved", "reserve no_capacity", "reserve servers_taken", "convert ok", "renew ok", "end ok", "sweep ok"} {
		require.NotZero(t, c.answers[rare], "%s: the histories are about nothing: %v", rare, c.answers)
	}
	require.Empty(t, c.missing(), "no call met a fault there: armed %v, reached %v, met %v", c.armed, c.reached, c.met)
	calls := 0
	for _, n := range c.answers {
		calls += n
	}
	t.Logf("tried: %d rounds of %d processes, %d calls, %d looks of the auditor", c.rounds, historyProcesses, calls, c.looks)
	t.Logf("faults: %v of %v, %v", c.reached, c.armed, c.met)
	for _, name := range slices.Sorted(maps.Keys(c.answers)) {
		t.Logf("%6d %s", c.answers[name], name)
	}
}

// again says how to have a failed run again, whatever failed in it, and tells the calls of the round that failed.
func (c *summary) again() {
	if !c.w.t.Failed() || c.last == nil {
		return
	}
	c.w.t.Logf("again: %s=%d %s=%d\nthe calls of that round, for %s:\n%s", seedEnv, c.seed, roundsEnv, c.last.round+1, historyEnv, story(c.last.records))
}

// atRest demands that nothing is left when the clients have stopped and what they held has been swept.
func (w *world) atRest() {
	w.t.Helper()
	var found []string
	require.Eventually(w.t, func() bool {
		_, err := w.reservations.Sweep(w.ctx, batch)
		if err == nil {
			found, err = w.audit(oneStatement(left))
		}
		return err == nil && len(found) == 0
	}, patience, 50*time.Millisecond, "left in the end: %v", &found)
	w.sound()
}
