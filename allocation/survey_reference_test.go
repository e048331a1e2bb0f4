package allocation

import (
	"cmp"
	"slices"
	"time"
)

// This is the rule in its plainest form, every server judged by itself and all of them sorted, which what the catalog says is
// held against.

// Snapshot is the inventory of an organization at one instant.
type Snapshot struct {
	At    time.Time // by the store's clock
	Facts []Facts
}

// Survey is the first pass over a snapshot of an inventory: every server judged, with every reason.
type Survey struct {
	SeenAt   time.Time // the store's clock in that snapshot
	Judged   []Judged  // every server, in the order the store gave
	eligible []*Facts
}

// Judged is one server with everything that speaks against it.
type Judged struct {
	Facts   *Facts
	Verdict Verdict
}

// survey judges every server.
func survey(seen Snapshot, wanted *Requirements) *Survey {
	s := &Survey{SeenAt: seen.At, Judged: make([]Judged, len(seen.Facts))}
	for i := range seen.Facts {
		f := &seen.Facts[i]
		v := Judge(wanted, f)
		s.Judged[i] = Judged{Facts: f, Verdict: v}
		if v.Eligible() {
			s.eligible = append(s.eligible, f)
		}
	}
	return s
}

// Counts returns the number of servers per reason, the most frequent first.
func (s *Survey) Counts() []ReasonCount {
	t := newTally()
	for _, j := range s.Judged {
		t.add(j.Verdict, 1)
	}
	return t.counts()
}

// Nearest returns the requirement whose absence would make the most servers eligible; nil when no single one would
// help. States, holds and bindings are no requirements and cannot be relaxed.
func (s *Survey) Nearest() *Nearest {
	return nearestOf(func(rules uint64) (n int) {
		for _, j := range s.Judged {
			if !j.Verdict.Eligible() && j.Verdict.all()&^rules == 0 {
				n++
			}
		}
		return n
	})
}

// emptyHanded says why nothing is eligible, and until when if waiting helps.
func (s *Survey) emptyHanded() (Cause, *time.Time) {
	var held, matching int
	var next int64
	for _, j := range s.Judged {
		if !j.Verdict.Matches() {
			continue
		}
		matching++
		if j.Facts.Held {
			held++
			next = earlier(next, j.Facts.HeldUntil)
		}
	}
	return causeOfNothing(len(s.Judged), matching, held), deadline(next)
}

// rank orders the servers that fit: the smallest machine first, then the cheapest, then equals in an order that the
// request's key decides, so that the same request on the same data chooses the same server while different requests
// spread over equals instead of queueing for the same one.
func rank(eligible []*Facts, key string) []Candidate {
	order := slices.Clone(eligible)
	slices.SortFunc(order, compareRank)
	ranked := make([]Candidate, 0, len(order))
	for len(order) > 0 {
		equals := []equal{}
		for same := 0; same < len(order) && compareRank(order[0], order[same]) == 0; same++ {
			id := order[same].Server.ID
			equals = append(equals, equal{id: id, hash: hashID(id), at: same})
		}
		for _, e := range orderEquals(equals, key) {
			ranked = append(ranked, Candidate{Server: &order[e.at].Server, Rank: len(ranked) + 1})
		}
		order = order[len(equals):]
	}
	return ranked
}

func compareRank(a, b *Facts) int {
	return cmp.Or(cmp.Compare(a.Server.Size(), b.Server.Size()), comparePrice(a.Server.Price, b.Server.Price))
}
