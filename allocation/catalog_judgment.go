package allocation

import (
	"slices"
	"sync"
)

// judgment is what one set of requirements says about every kind of server. Customers order the same few products again
// and again, so it is kept for as long as the kinds and their members stay what they are.
type judgment struct {
	verdicts []Verdict // as if their servers were ready and free
	fitting  []*kind   // those that nothing speaks against, in the order of the ranking
	ofKinds  tally     // what speaks against their members, whatever their status
	wanted   Wanted    // the requirements as the store takes them
	reasons  Blob      // packed, in the order of the roster; made when it is first frozen
	packing  sync.Once
}

// maxJudgments bounds the memory: a caller that asks for something else each time makes nothing but work for itself.
const maxJudgments = 256

// judgments are kept for one roster. Those who read the index share it, hence its own lock.
type judgments struct {
	sync.Mutex
	roster uint64
	of     map[string]*judgment // by the requirements as JSON
}

// judge returns what is known about these requirements, or judges every kind. The index is locked for reading.
func (x *index) judge(wanted *Requirements) *judgment {
	key := string(mustJSON(wanted))
	x.judged.Lock()
	defer x.judged.Unlock()
	if x.judged.of == nil || x.judged.roster != x.roster || len(x.judged.of) >= maxJudgments {
		x.judged.roster, x.judged.of = x.roster, map[string]*judgment{}
	}
	j := x.judged.of[key]
	if j == nil {
		j = x.judgeKinds(wanted)
		x.judged.of[key] = j
	}
	return j
}

func (x *index) judgeKinds(wanted *Requirements) *judgment {
	j := &judgment{verdicts: make([]Verdict, len(x.kinds)), ofKinds: newTally(), wanted: wanted.Wanted()}
	for i, k := range x.kinds {
		j.verdicts[i] = judge(kindRules, wanted, &k.facts)
		j.ofKinds.add(j.verdicts[i], len(k.order))
		if j.verdicts[i].Eligible() {
			j.fitting = append(j.fitting, k)
		}
	}
	slices.SortStableFunc(j.fitting, compareKinds)
	return j
}
