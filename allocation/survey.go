package allocation

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Survey is the first pass over an inventory: every server judged in one snapshot, with every reason.
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

// ReasonCount says how many servers one reason left out. A server with three reasons counts in three of them.
type ReasonCount struct {
	Reason
	Servers int    `json:"servers"`
	Text    string `json:"text"`
	Remedy  string `json:"remedy"`
}

// Counts returns the number of servers per reason, the most frequent first.
func (s *Survey) Counts() []ReasonCount {
	fails, unknown := make([]int, len(rules)), make([]int, len(rules))
	for _, j := range s.Judged {
		for i := range rules {
			fails[i] += int(j.Verdict.Fails >> i & 1)
			unknown[i] += int(j.Verdict.Unknown >> i & 1)
		}
	}
	counts := []ReasonCount{}
	for i := range rules {
		counts = appendCount(counts, reasonAt(i, false), fails[i])
		counts = appendCount(counts, reasonAt(i, true), unknown[i])
	}
	slices.SortStableFunc(counts, func(a, b ReasonCount) int { return cmp.Compare(b.Servers, a.Servers) })
	return counts
}

func appendCount(counts []ReasonCount, reason Reason, servers int) []ReasonCount {
	if servers == 0 {
		return counts
	}
	sentence, remedy := Describe(reason)
	return append(counts, ReasonCount{Reason: reason, Servers: servers, Text: sentence, Remedy: remedy})
}

// Nearest says which one requirement to relax, and how many free servers that would give at once.
type Nearest struct {
	Requirement string `json:"requirement"`
	Servers     int    `json:"servers"`
	Text        string `json:"text"`
}

// Nearest returns the requirement whose absence would make the most servers eligible; nil when no single one would
// help. States, holds and bindings are no requirements and cannot be relaxed. Of equals the first of the table counts.
func (s *Survey) Nearest() *Nearest {
	var best *Nearest
	seen := map[string]bool{"": true}
	for i := range rules {
		requirement := rules[i].Requirement
		if seen[requirement] {
			continue
		}
		seen[requirement] = true
		n := s.eligibleWithout(mask(func(r *Rule) bool { return r.Requirement == requirement }))
		if n > 0 && (best == nil || n > best.Servers) {
			best = &Nearest{Requirement: requirement, Servers: n}
		}
	}
	if best != nil {
		best.Text = fmt.Sprintf("Without the requirement %q %s would fit at once.", best.Requirement, servers(best.Servers))
	}
	return best
}

func (s *Survey) eligibleWithout(relaxed uint64) int {
	n := 0
	for _, j := range s.Judged {
		if !j.Verdict.Eligible() && j.Verdict.all()&^relaxed == 0 {
			n++
		}
	}
	return n
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
			if next == 0 || j.Facts.HeldUntil < next {
				next = j.Facts.HeldUntil
			}
		}
	}
	switch {
	case len(s.Judged) == 0:
		return CauseInventoryEmpty, nil
	case matching == 0:
		return CauseNothingMatches, nil
	case held > 0:
		at := time.UnixMicro(next).UTC()
		return CauseAllHeld, &at
	default:
		return CauseAllSold, nil
	}
}

func servers(n int) string {
	if n == 1 {
		return "1 server"
	}
	return fmt.Sprintf("%d servers", n)
}
