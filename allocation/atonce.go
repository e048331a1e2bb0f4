package allocation

import "context"

// fewCandidates are enough to find one that no sibling claims in the moment between looking and claiming.
const fewCandidates = 3

// atOnce reserves the best candidate that no sibling is trying in a transaction of its own, which travels in one round
// trip. It holds for the many requests that nothing stands in the way of; nil means that something did, or that nothing
// fits, and then the walk finds out what. One candidate needs no savepoint: its transaction ends with it.
func (w *walk) atOnce(ctx context.Context, store Store) (*Outcome, error) {
	if w.noShortcut || !w.enabled || w.catalog.maxAge == 0 {
		return nil, nil
	}
	err := w.known.bringUp(ctx, w.catalog.maxAge, func(ctx context.Context, since Horizon) (News, error) {
		return w.newsFrom(ctx, store, since)
	})
	if err != nil {
		return nil, err
	}
	w.lookFor(fewCandidates)
	best, release := w.known.claimFirst(w.seen.ranked)
	if best == nil {
		return nil, nil
	}
	*w.claims = append(*w.claims, release)
	c := best.candidate()
	choice := explainChoice(c, w.seen.servers, w.seen.eligible, nil)
	d := &Decision{Outcome: OutcomeReserved, Choice: &choice}
	w.walked = []Walked{{Server: best.id, Name: best.name, Rank: best.rank, Outcome: TryReserved}}
	w.fill(d)
	attempt := w.attempt(c, choice)
	attempt.Lapsed = best.lapsed
	made, err := store.ReserveAtOnce(ctx, attempt, d)
	if err != nil || made == nil {
		return nil, err
	}
	return &Outcome{Code: OutcomeReserved, Reservation: made, Decision: d, HoldToken: w.token(made)}, nil
}
