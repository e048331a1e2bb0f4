package allocation

import (
	"context"
	"time"

	"allocator/identity"
	"allocator/inventory"
)

// Evaluation is what a reservation would come to now. Nothing is written and nothing is locked.
//
// All that is judged in it is of one instant, At: counts, order and reasons do not change while Ranked and Rejected are
// read, however long that takes, and each server is in exactly one of the two. What a server is called and where it stands
// is read with its line, so that a name may be newer than At.
type Evaluation struct {
	At           time.Time
	Servers      int // looked at
	Eligible     int // of these, how many fit
	Counts       []ReasonCount
	Cause        Cause // why there is nothing, if there is nothing
	NextExpiryAt *time.Time
	Nearest      *Nearest
	Text         string
	UnderEdit    []inventory.ServerID // a note: it neither rejects nor ranks

	*listing
}

// Evaluate judges the inventory as Reserve would. The key decides the order of equals; it may be empty. The error is
// ErrFeatureDisabled while the organization may not reserve.
//
// The catalog is brought up to date from the database first, by a read that begins after the call.
func (a *Allocator) Evaluate(ctx context.Context, caller identity.Caller, key string, wanted Requirements) (*Evaluation, error) {
	if !a.gate.Enabled(ctx, caller.Organization) {
		return nil, ErrFeatureDisabled
	}
	var e *Evaluation
	err := a.lookNow(ctx, caller.Organization, func(known *index) { e = known.evaluate(&wanted, key) })
	if err != nil {
		return nil, err
	}
	e.conclude(key)
	e.UnderEdit, err = a.edits.read(ctx, caller.Organization)
	return e, err
}

// evaluate takes what is judged of the index, which is locked for reading. What can wait is left to conclude.
func (x *index) evaluate(wanted *Requirements, key string) *Evaluation {
	p := x.pass(wanted, key)
	e := &Evaluation{At: x.now, Servers: len(x.servers), Counts: p.counts(), listing: p.list()}
	if e.Eligible = p.free(); e.Eligible == 0 {
		e.Cause, e.NextExpiryAt = p.emptyHanded()
		e.Nearest = nearestOf(p.eligibleWithout)
	}
	return e
}

// conclude ranks the servers and says in words what that comes to. The index need not be locked.
func (e *Evaluation) conclude(key string) {
	e.rank(key)
	for best := range e.Ranked() {
		e.Text = explainChoice(best, e.Servers, e.Eligible, nil).Text
		return
	}
	d := Decision{Outcome: OutcomeNoCapacity, Cause: e.Cause, NextExpiryAt: e.NextExpiryAt, Nearest: e.Nearest, Servers: e.Servers}
	e.Text = d.sentence()
}
