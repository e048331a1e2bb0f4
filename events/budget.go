package events

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// How many refused attempts are written one by one in each window, and how many trails get a count of the rest; Record
// says why.
const (
	budgetWindow     = time.Minute
	budgetPerSource  = 10
	budgetPerProcess = 30
	budgetForSummary = 10
	systemActor      = "system"
)

// source is who an attempt is counted for.
type source struct{ organization, actorKind, actorID string }

// budget decides which refused attempts are written one by one, and counts the others. It remembers no more sources
// than it admits attempts.
type budget struct {
	now func() time.Time

	mu         sync.Mutex
	began      time.Time
	written    map[bool]int // by whether the organization is known
	bySource   map[source]int
	suppressed map[string]int // by organization
}

func newBudget(now func() time.Time) *budget {
	return &budget{now: now, written: map[bool]int{}, bySource: map[source]int{}, suppressed: map[string]int{}}
}

// admit tells whether the attempt is written; if not, it has been counted.
func (b *budget) admit(entry AuditEntry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.now(); now.Sub(b.began) >= budgetWindow {
		b.began = now
		clear(b.written)
		clear(b.bySource)
	}
	known := entry.OrganizationID != ""
	from := source{entry.OrganizationID, entry.ActorKind, entry.ActorID}
	if b.written[known] >= budgetPerProcess || b.bySource[from] >= budgetPerSource {
		b.count(entry.OrganizationID)
		return false
	}
	b.written[known]++
	b.bySource[from]++
	return true
}

// count adds to the trail of the organization; once there are enough trails, to the platform's.
func (b *budget) count(organization string) {
	if _, there := b.suppressed[organization]; !there && len(b.suppressed) >= budgetForSummary {
		organization = ""
	}
	b.suppressed[organization]++
}

// takeSuppressed gives one entry per trail that had attempts counted since the last call.
func (b *budget) takeSuppressed() []AuditEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	var summaries []AuditEntry
	for _, organization := range slices.Sorted(maps.Keys(b.suppressed)) {
		summaries = append(summaries, AuditEntry{
			OrganizationID: organization,
			ActorKind:      systemActor,
			Action:         ActionRequestsSuppressed,
			Outcome:        OutcomeRefused,
			Detail:         map[string]string{"count": strconv.Itoa(b.suppressed[organization])},
		})
	}
	clear(b.suppressed)
	return summaries
}
