package allocation

import (
	"bytes"
	"context"
	"encoding/json"

	"allocator/identity"
	"allocator/reservation"
)

// walk is one request's way through one transaction.
type walk struct {
	*Allocator
	tx      Tx
	caller  identity.Caller
	req     *Request
	enabled bool // the switch, read once for the whole request
	walks   int  // how often this request has been tried, this walk included
	last    bool // refuse rather than try again

	known  *tracked // the organization's part of the catalog
	claims *claims

	question    Question
	wanted      json.RawMessage // the requirements
	fingerprint []byte
	opening     *Opening
	seen        *overview // what the first pass came to
	read        bool      // the catalog was brought up to date by this walk
	fitted      bool      // and a server fitted then
	walked      []Walked  // never nil: it is frozen as a list
	skipped     int
	stale       int
	attempts    int
}

func newWalk(a *Allocator, tx Tx, caller identity.Caller, req *Request, enabled bool) *walk {
	wanted := mustJSON(req.Requirements)
	return &walk{
		Allocator: a, tx: tx, caller: caller, req: req, enabled: enabled, walked: []Walked{},
		known: a.catalog.tracked(caller.Organization), wanted: wanted, fingerprint: req.fingerprint(wanted),
		question: Question{
			Organization: caller.Organization, Key: req.IdempotencyKey, Order: req.Order, CustomerRef: req.CustomerRef,
		},
	}
}

// run takes the steps of DESIGN.md section 3 in order; the first that has an answer ends the walk.
func (w *walk) run(ctx context.Context) (*Outcome, error) {
	opening, err := w.tx.Open(ctx, w.question)
	if err != nil {
		return nil, err
	}
	w.opening = opening
	for _, step := range []func(context.Context) (*Outcome, error){
		w.askKey, w.askSwitch, w.askSiblings, w.askOrderLine, w.askHoldLimit, w.firstPass,
	} {
		if outcome, err := step(ctx); outcome != nil || err != nil {
			return outcome, err
		}
	}
	return w.secondPass(ctx)
}

// askKey answers a key that was used before, whether the switch is on or not.
func (w *walk) askKey(context.Context) (*Outcome, error) { return w.replay(w.opening.ByKey) }

// askSwitch refuses while the release switch is off or the organization is closing.
func (w *walk) askSwitch(ctx context.Context) (*Outcome, error) {
	if w.enabled && !w.opening.Policy.Closing {
		return nil, nil
	}
	return w.decide(ctx, &Decision{Outcome: OutcomeFeatureDisabled}, nil)
}

// askSiblings refuses at once while another request with the same key or for the same order line is at work: waiting
// for it would hold other servers hostage.
func (w *walk) askSiblings(ctx context.Context) (*Outcome, error) {
	switch {
	case !w.opening.KeyLocked:
		return w.refuse(ctx, &Decision{Outcome: OutcomeContended, Cause: CauseSameKey})
	case !w.opening.LineLocked:
		return w.refuse(ctx, &Decision{Outcome: OutcomeContended, Cause: CauseSameOrderLine})
	}
	return nil, nil
}

// askOrderLine answers with what the order line already has, and moves a dead hold of it aside.
func (w *walk) askOrderLine(ctx context.Context) (*Outcome, error) {
	if outcome, err := w.answerExisting(ctx, w.opening.Existing); outcome != nil || err != nil {
		return outcome, err
	}
	dead := w.opening.Existing.ByLine
	if dead == nil {
		return nil, nil
	}
	moved, err := w.tx.ExpireHold(ctx, dead)
	if err != nil || moved {
		return nil, err
	}
	// It was renewed, converted or swept while this statement waited for it: ask what stands now.
	existing, err := w.tx.AskAgain(ctx, w.question)
	if err != nil {
		return nil, err
	}
	return w.answerExisting(ctx, existing)
}

// askHoldLimit refuses a customer that has as many open holds as the organization allows.
func (w *walk) askHoldLimit(ctx context.Context) (*Outcome, error) {
	if w.req.CustomerRef == "" || w.opening.OpenHolds < w.opening.Policy.HoldLimit {
		return nil, nil
	}
	return w.refuse(ctx, &Decision{Outcome: OutcomeHoldLimit})
}

// firstPass judges the whole inventory, in memory. With nothing eligible the database is read once more before that is
// believed; then there is nothing to sell.
func (w *walk) firstPass(ctx context.Context) (*Outcome, error) {
	if err := w.known.bringUpInTx(ctx, w.catalog.maxAge, w.news); err != nil {
		return nil, err
	}
	w.look()
	if w.seen.eligible == 0 && w.catalog.maxAge > 0 {
		if err := w.lookAgain(ctx); err != nil {
			return nil, err
		}
	}
	if w.seen.eligible > 0 {
		return nil, nil
	}
	return w.nothing(ctx)
}

// nothing refuses because no server fits.
func (w *walk) nothing(ctx context.Context) (*Outcome, error) {
	return w.refuse(ctx, &Decision{
		Outcome: OutcomeNoCapacity, Cause: w.seen.cause, NextExpiryAt: w.seen.next, Nearest: w.seen.nearest,
	})
}

// look judges what the catalog knows.
func (w *walk) look() { w.lookFor(MaxScanned + 1) }

// lookFor names as many candidates.
func (w *walk) lookFor(most int) {
	w.seen = w.known.overview(&w.req.Requirements, w.req.IdempotencyKey, most, w.known.isBusy)
	w.fitted = w.fitted || w.read && w.seen.eligible > 0
}

// news reads what the catalog does not know yet, in this walk's own transaction: a second connection could be one that
// requests like this one have used up.
func (w *walk) news(ctx context.Context, since Horizon) (News, error) {
	return w.newsFrom(ctx, w.tx, since)
}

func (w *walk) newsFrom(ctx context.Context, from source, since Horizon) (News, error) {
	news, err := w.known.news(ctx, from, w.caller.Organization, since)
	w.read = err == nil
	return news, err
}

// lookAgain reads what the catalog does not know yet, and judges again.
func (w *walk) lookAgain(ctx context.Context) error {
	news, err := w.news(ctx, w.known.position())
	if err != nil {
		return err
	}
	w.known.apply(news)
	w.look()
	return nil
}

// refuse asks key and order line once more before it refuses: a sibling may have committed a moment ago, and its
// reservation is the right answer then.
func (w *walk) refuse(ctx context.Context, d *Decision) (*Outcome, error) {
	existing, err := w.tx.AskAgain(ctx, w.question)
	if err != nil {
		return nil, err
	}
	if outcome, err := w.answerExisting(ctx, existing); outcome != nil || err != nil {
		return outcome, err
	}
	if !w.last && worthWaiting(d) {
		return nil, nil
	}
	return w.decide(ctx, d, nil)
}

// worthWaiting tells whether trying again in a moment may end differently. A sibling with the same key or order line
// is answered at once: its own answer is what the caller should ask for next.
func worthWaiting(d *Decision) bool {
	return d.Cause == CauseServersTaken || d.Cause == CauseScanLimit || d.Cause == CauseAttemptLimit
}

// answerExisting returns the reservation of the key, else of the order line; nil when neither has a live one.
func (w *walk) answerExisting(ctx context.Context, existing Existing) (*Outcome, error) {
	if outcome, err := w.replay(existing.ByKey); outcome != nil || err != nil {
		return outcome, err
	}
	r := existing.ByLine
	switch {
	case r == nil || r.State == reservation.StateExpired:
		return nil, nil
	case r.IdempotencyKey == w.req.IdempotencyKey: // committed between the two questions
		return w.replay(r)
	case bytes.Equal(r.Fingerprint, w.fingerprint):
		return w.repeat(OutcomeExisting, r), nil
	default:
		return w.decide(ctx, &Decision{Outcome: OutcomeOrderLineHeld, Reservation: r.ID}, r)
	}
}

// replay answers a key that has a reservation: the same one in its present state, or the complaint that the key was
// used for something else.
func (w *walk) replay(r *reservation.Reservation) (*Outcome, error) {
	switch {
	case r == nil:
		return nil, nil
	case !bytes.Equal(r.Fingerprint, w.fingerprint):
		return nil, ErrIdempotencyMismatch
	default:
		return w.repeat(OutcomeReplayed, r), nil
	}
}

// repeat returns an earlier reservation, with its token while it is held by the one that made it.
func (w *walk) repeat(code OutcomeCode, r *reservation.Reservation) *Outcome {
	outcome := &Outcome{Code: code, Reservation: r}
	if r.State == reservation.StateHeld && !r.TakenOver() {
		outcome.HoldToken = w.token(r)
	}
	return outcome
}

func (w *walk) token(r *reservation.Reservation) string {
	return w.tokens.Token(r.TokenKey, r.Organization, r.ID, r.Generation)
}

// decide freezes the decision and answers with it.
func (w *walk) decide(ctx context.Context, d *Decision, inTheWay *reservation.Reservation) (*Outcome, error) {
	w.fill(d)
	if err := w.tx.Decide(ctx, d); err != nil {
		return nil, err
	}
	return &Outcome{Code: d.Outcome, Reservation: inTheWay, Decision: d}, nil
}

// fill adds what the walk has seen so far.
func (w *walk) fill(d *Decision) {
	d.Organization, d.Order, d.By = w.caller.Organization, w.req.Order, w.caller.Actor
	d.Requirements = w.wanted
	d.Walked, d.Skipped, d.Stale, d.Attempts, d.Walks = w.walked, w.skipped, w.stale, w.attempts, w.walks
	d.Counts = []ReasonCount{}
	if w.seen != nil {
		d.SeenAt, d.SeenVersion, d.Servers, d.Eligible = &w.seen.seenAt, w.seen.version, w.seen.servers, w.seen.eligible
		d.Counts, d.Pack = w.seen.counts, w.seen.frozen
		d.UnderEdit = noted(w.edits.known(w.caller.Organization), w.walked)
	}
	d.Text = d.sentence()
}
