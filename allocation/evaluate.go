package allocation

import (
	"context"
	"time"

	"allocator/identity"
	"allocator/inventory"
)

// Evaluation is what a reservation would come to now. Nothing is written and nothing is locked.
type Evaluation struct {
	At           time.Time
	Survey       *Survey
	Ranked       []Candidate // those that fit, in the order in which they would be tried
	Cause        Cause       // why there is nothing, if there is nothing
	NextExpiryAt *time.Time
	Nearest      *Nearest
	Text         string
	UnderEdit    []inventory.ServerID // a note: it neither rejects nor ranks
}

// Evaluate judges the inventory as Reserve would. The key decides the order of equals; it may be empty. The error is
// ErrFeatureDisabled while the organization may not reserve.
func (a *Allocator) Evaluate(ctx context.Context, caller identity.Caller, key string, wanted Requirements) (*Evaluation, error) {
	if !a.gate.Enabled(ctx, caller.Organization) {
		return nil, ErrFeatureDisabled
	}
	snapshot, err := a.store.Snapshot(ctx, caller.Organization)
	if err != nil {
		return nil, err
	}
	s := survey(snapshot, &wanted)
	e := &Evaluation{At: s.SeenAt, Survey: s, Ranked: rank(s.eligible, key)}
	if e.UnderEdit, err = a.edits.read(ctx, caller.Organization); err != nil {
		return nil, err
	}
	if len(e.Ranked) > 0 {
		e.Text = explainChoice(e.Ranked[0], len(s.Judged), len(s.eligible), nil).Text
		return e, nil
	}
	e.Cause, e.NextExpiryAt = s.emptyHanded()
	e.Nearest = s.Nearest()
	d := Decision{Outcome: OutcomeNoCapacity, Cause: e.Cause, NextExpiryAt: e.NextExpiryAt, Nearest: e.Nearest, Servers: len(s.Judged)}
	e.Text = d.sentence()
	return e, nil
}
