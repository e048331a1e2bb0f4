package allocation

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// overview is what the first pass came to, however it was made: from one snapshot or from the catalog.
type overview struct {
	seenAt   time.Time
	version  uint64
	servers  int
	eligible int
	counts   []ReasonCount
	ranked   []hit // best first; one more than a walk may scan, if there are as many
	cause    Cause // why there is nothing, if there is nothing
	next     *time.Time
	nearest  *Nearest
	frozen   FrozenPack
	wanted   Wanted
}

// tally adds up reasons over servers or over whole kinds of them.
type tally struct{ fails, unknown []int }

func newTally() tally { return tally{make([]int, len(rules)), make([]int, len(rules))} }

func (t *tally) clone() *tally { return &tally{slices.Clone(t.fails), slices.Clone(t.unknown)} }

// add counts n servers with that verdict.
func (t *tally) add(v Verdict, n int) {
	for m := v.Fails; m != 0; m &= m - 1 {
		t.fails[bits.TrailingZeros64(m)] += n
	}
	for m := v.Unknown; m != 0; m &= m - 1 {
		t.unknown[bits.TrailingZeros64(m)] += n
	}
}

// counts lists the reasons, the most frequent first.
func (t *tally) counts() []ReasonCount {
	counts := []ReasonCount{}
	for i := range rules {
		counts = appendCount(counts, reasonAt(i, false), t.fails[i])
		counts = appendCount(counts, reasonAt(i, true), t.unknown[i])
	}
	slices.SortStableFunc(counts, func(a, b ReasonCount) int { return cmp.Compare(b.Servers, a.Servers) })
	return counts
}

// relaxed is one requirement with the bits of its rules.
type relaxed struct {
	requirement string
	rules       uint64
}

// relaxable lists every requirement once, in the order of the table.
var relaxable = func() (list []relaxed) {
	for i := range rules {
		name := rules[i].Requirement
		known := slices.ContainsFunc(list, func(r relaxed) bool { return r.requirement == name })
		if name != "" && !known {
			list = append(list, relaxed{name, mask(func(r *Rule) bool { return r.Requirement == name })})
		}
	}
	return list
}()

// nearestOf picks the requirement whose absence makes the most servers eligible; nil if none does. Of equals the first
// of the table counts.
func nearestOf(without func(rules uint64) int) *Nearest {
	var best *Nearest
	for _, r := range relaxable {
		if n := without(r.rules); n > 0 && (best == nil || n > best.Servers) {
			best = &Nearest{Requirement: r.requirement, Servers: n}
		}
	}
	if best != nil {
		best.Text = fmt.Sprintf("Without the requirement %q %s would fit at once.", best.Requirement, servers(best.Servers))
	}
	return best
}

// causeOfNothing says why nothing is eligible: of the servers that would fit if nobody had them, some may be held.
func causeOfNothing(servers, matching, held int) Cause {
	switch {
	case servers == 0:
		return CauseInventoryEmpty
	case matching == 0:
		return CauseNothingMatches
	case held > 0:
		return CauseAllHeld
	default:
		return CauseAllSold
	}
}
