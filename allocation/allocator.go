package allocation

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"allocator/identity"
	"allocator/reservation"
)

// Switch tells whether an organization may make new reservations. It answers from memory, and never fails: without an
// answer it is off.
type Switch interface {
	// Enabled is asked once for each request.
	Enabled(ctx context.Context, org identity.OrganizationID) bool
}

// Tokens makes the hold tokens of new reservations.
type Tokens interface {
	// Current names the key that signs new tokens; the name is kept with the reservation.
	Current() string
	// Token returns the token of one generation of a reservation, the same for the same arguments.
	Token(keyName string, org identity.OrganizationID, id reservation.ID, generation int64) string
}

// Allocator reserves servers. Safe for concurrent use.
type Allocator struct {
	store      Store
	catalog    *Catalog
	gate       Switch
	tokens     Tokens
	noShortcut bool // every request walks
	edits      *edits
}

// New returns an Allocator over a store, the release switch and the maker of hold tokens.
func New(store Store, release Switch, tokens Tokens, options ...Option) *Allocator {
	a := &Allocator{store: store, catalog: newCatalog(), gate: release, tokens: tokens}
	for _, option := range options {
		option(a)
	}
	return a
}

// Option settles something about an Allocator.
type Option func(a *Allocator)

// MaxAge settles how old what the Allocator remembers of the inventory may be before a request reads what is new;
// DefaultMaxAge if nothing is said, 0 to read for every request.
func MaxAge(age time.Duration) Option {
	return func(a *Allocator) { a.catalog.maxAge = age }
}

// WalkAlways makes every request take the ordinary walk, in which each step waits for the answer to the one before; without
// it a request tries its best candidate at once. What is promised is the same.
func WalkAlways() Option {
	return func(a *Allocator) { a.noShortcut = true }
}

// Watcher is what the Allocator learns by of changes that this process commits elsewhere.
func (a *Allocator) Watcher() reservation.Watcher { return a.catalog }

// Reserve answers one request: a reservation, the one that the key or the order line already has, or a refusal with
// its decision. An error is a failure of the service or ErrIdempotencyMismatch; a refusal is none.
//
// A walk that ended because others held what fits is taken again while the caller is willing to wait, each time in a
// fresh transaction with a fresh list and with no connection held in between, so that no transaction exceeds the limits.
func (a *Allocator) Reserve(ctx context.Context, caller identity.Caller, req Request) (*Outcome, error) {
	a.edits.begin(ctx, caller.Organization)
	start := time.Now() //nolint:forbidigo // how long the caller waits is no deadline of a reservation
	wait := min(req.Wait, MaxWait)
	for walks := 1; ; walks++ {
		pause := pauseBefore(walks)
		last := time.Since(start)+pause >= wait //nolint:forbidigo // likewise
		outcome, err := a.walk(ctx, caller, &req, walks, last)
		if err != nil {
			return nil, err
		}
		if outcome != nil {
			outcome.Waited = wait
			return outcome, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// pauseBefore returns a few milliseconds of jitter, growing with each walk so that a crowd thins out.
func pauseBefore(walk int) time.Duration {
	ceiling := min(time.Duration(walk)*10*time.Millisecond, 200*time.Millisecond)
	return ceiling/2 + rand.N(ceiling/2) //nolint:gosec // jitter
}

// walk takes one request through one transaction, and through another one if it turns out that the catalog must be read
// in full first: no transaction waits for that. It returns nil without an error when the servers that fit were others' at
// that moment and the caller is willing to wait, that is unless this walk is the last.
func (a *Allocator) walk(ctx context.Context, caller identity.Caller, req *Request, walks int, last bool) (*Outcome, error) {
	for {
		outcome, err := a.walkOnce(ctx, caller, req, walks, last)
		if !errors.Is(err, errUnread) {
			return outcome, err
		}
		if err := a.fill(ctx, caller.Organization); err != nil {
			return nil, err
		}
	}
}

func (a *Allocator) walkOnce(ctx context.Context, caller identity.Caller, req *Request, walks int, last bool) (*Outcome, error) {
	enabled := a.gate.Enabled(ctx, caller.Organization)
	var claims claims
	defer claims.release()
	take := func(tx Tx) *walk {
		w := newWalk(a, tx, caller, req, enabled)
		w.walks, w.last, w.claims = walks, last, &claims
		return w
	}
	outcome, err := take(nil).atOnce(ctx, a.store)
	if outcome == nil && (err == nil || errors.Is(err, errUnread)) { // many an answer needs no catalog
		err = a.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
			outcome, err = take(tx).run(ctx)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	if outcome != nil && outcome.Code == OutcomeReserved {
		a.catalog.ReservationChanged(outcome.Reservation)
	}
	return outcome, nil
}

// claims are the servers that one walk has tried; until its transaction is over, requests of this process that come
// beside it try others first.
type claims []func()

func (c *claims) release() {
	for _, one := range *c {
		one()
	}
	*c = nil
}

// DecisionByID returns a decision with the list it froze, or reservation.ErrNotFound, or ErrDecisionGone.
func (a *Allocator) DecisionByID(ctx context.Context, caller identity.Caller, id DecisionID) (*Decision, error) {
	d, err := a.store.Decision(ctx, caller.Organization, id)
	if err != nil {
		return nil, err
	}
	pack, err := a.store.FrozenPack(ctx, caller.Organization, id)
	if err != nil || pack.Roster.Body == nil {
		return d, err
	}
	d.Frozen, err = pack.Unpack()
	return d, err
}

// Decisions lists the organization's decisions, newest first, without their candidates.
func (a *Allocator) Decisions(ctx context.Context, caller identity.Caller, filter DecisionFilter) ([]*Decision, error) {
	return a.store.Decisions(ctx, caller.Organization, filter)
}
