//go:build gates

package concurrency_test

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/store/postgres/gate"
)

// drama is some acts in a setting, and all that may come of them.
type drama struct {
	set   setting
	crowd bool         // the first two acts are alike
	stops []gate.Place // nil: everywhere
	acts  []act
	legal []string // what each act came to, and what stands in the end; each must be seen
}

// Every interleaving of two operations over the places of their transactions, and of a chosen few of three: what each is
// told and what stands in the end is one of what the design allows, all of which is seen; every invariant holds; nobody
// waits in a circle; nothing is left locked; and a day later nothing is held any more. A place that no run came to is a
// failure. That somebody waits for a lock is known from the database, not from time passing.
//
// Requirements: R01, R16, R18, R40, R41, R43, R45, R47, R51, R52, R60, R61. Cases: HO-01, HO-08, HO-09, CO-03, CO-10, EX-10.
// Faults: F-R1, F-R2, F-R3, F-R4, F-R5, F-R6, F-R7, F-R9, F-R14, F-R16, F-T4.
func TestEverySchedule(t *testing.T) {
	// Each request reads what is new, so that no schedule depends on how long it takes.
	atOnce := []allocation.Option{allocation.MaxAge(1)}
	walk := append([]allocation.Option{allocation.WalkAlways()}, atOnce...)
	groups := map[string]struct {
		dramas  map[string]drama
		options []allocation.Option
	}{
		"orders": {ordersAmongOrders, walk}, "orders and holds": {ordersAndHolds, walk},
		"orders and dead holds": {ordersAndDeadHolds, walk}, "deeds": {deedsAmongDeeds, walk},
		"orders at once": {ordersAtOnce(), atOnce},
	}
	all := &coverage{reached: map[gate.Place]int{}}
	t.Cleanup(func() { all.report(t, len(groups)) })
	for name, group := range groups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, group.options...)
			runs, whole := 0, true
			for _, sentence := range slices.Sorted(maps.Keys(group.dramas)) {
				if whole = t.Run(sentence, func(t *testing.T) { runs += s.on(t).everyRun(group.dramas[sentence]) }); !whole {
					break // what the failure left of the lanes is no place for another
				}
			}
			require.Zero(t, s.deadlocks())
			s.sound()
			all.add(s, runs, whole)
		})
	}
}

// everyRun plays every schedule of a drama, and returns how many there are.
func (s *stage) everyRun(d drama) (runs int) {
	s.t.Helper()
	if d.stops == nil {
		d.stops = gate.Places()
	}
	seen := map[string]int{}
	runs, only := s.everySchedule(&d, func(r *schedule) {
		outcome := r.outcome()
		require.Contains(s.t, d.legal, outcome, "%s", r)
		require.Empty(s.t, r.late(), "done past the deadline\n%s", r)
		require.Empty(s.t, r.unheard(), "refused although a sibling had the reservation\n%s", r)
		r.dayAfter(r)
		seen[outcome]++
	})
	if !only {
		require.ElementsMatch(s.t, d.legal, slices.Collect(maps.Keys(seen)), "something that may happen never did")
	}
	return runs
}

// late are the changes that succeeded although the deadline had passed before they left the place at which they had both
// locks and had written nothing.
func (r *schedule) late() (late []string) {
	passed := slices.Index(r.trace, deadlineAct.name+" reaches "+theEnd)
	if passed < 0 {
		return nil
	}
	for _, one := range r.actors {
		wrote := slices.Index(r.trace, one.name+" leaves "+string(gate.ChangeAfterLock))
		if passed < wrote && slices.Contains([]string{"ok", "repeated", "cancelled"}, one.word) {
			late = append(late, one.name)
		}
	}
	return late
}

// unheard are the requests that were refused for a sibling's sake although the sibling had ended with the reservation
// before they left the place in front of the last question.
func (r *schedule) unheard() (unheard []string) {
	for _, one := range r.actors {
		if one.word != string(allocation.CauseSameKey) && one.word != string(allocation.CauseSameOrderLine) {
			continue
		}
		asked := slices.Index(r.trace, one.name+" leaves "+string(gate.ReserveBeforeRefusal))
		for _, sibling := range r.actors {
			ended := slices.Index(r.trace, sibling.name+" reaches "+theEnd)
			if sibling.word == string(allocation.OutcomeReserved) && ended < asked {
				unheard = append(unheard, one.name)
			}
		}
	}
	return unheard
}

// coverage is what the schedules of all groups came by.
type coverage struct {
	mu      sync.Mutex
	groups  int // that ran whole
	runs    int
	reached map[gate.Place]int
}

func (c *coverage) add(s *stage, runs int, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs += runs
	if whole {
		c.groups++
	}
	for place, n := range s.reached {
		c.reached[place] += n
	}
}

// report fails for a place that nobody came to, unless some groups were left out or failed themselves.
func (c *coverage) report(t *testing.T, groups int) {
	t.Helper()
	t.Logf("tried: %d schedules", c.runs)
	for _, place := range gate.Places() {
		require.False(t, c.groups == groups && c.reached[place] == 0, "no schedule came to %s", place)
	}
}
