package allocation

import (
	"fmt"
	"time"
)

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

// ReasonCount says how many servers one reason left out. A server with three reasons counts in three of them.
type ReasonCount struct {
	Reason
	Servers int    `json:"servers"`
	Text    string `json:"text"`
	Remedy  string `json:"remedy"`
}

// Counts returns the number of servers per reason, the most frequent first.
func (s *Survey) Counts() []ReasonCount {
	t := newTally()
	for _, j := range s.Judged {
		t.add(j.Verdict, 1)
	}
	return t.counts()
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

// earlier is the smaller of two deadlines of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// deadline turns Unix microseconds into a time; 0 is none.
func deadline(micro int64) *time.Time {
	if micro == 0 {
		return nil
	}
	at := time.UnixMicro(micro).UTC()
	return &at
}

func servers(n int) string {
	if n == 1 {
		return "1 server"
	}
	return fmt.Sprintf("%d servers", n)
}
