package allocation

import (
	"context"

	"allocator/inventory"
)

// secondPass tries the eligible servers one at a time in rank order. A skipped or stale candidate is no attempt, one
// lost in an insert race is; all of them count towards the scan. When every candidate of the list was tried and some of
// them were stale, the list itself was: it is brought up to date once for each time that happens, within the limits.
func (w *walk) secondPass(ctx context.Context) (*Outcome, error) {
	tried := map[inventory.ServerID]bool{}
	stale := 0
	for {
		c, found := w.next(tried)
		switch {
		case w.attempts == MaxAttempts:
			return w.contended(ctx, CauseAttemptLimit)
		case !found && w.stale > stale:
			stale = w.stale
			if err := w.lookAgain(ctx); err != nil {
				return nil, err
			}
			continue
		case !found:
			return w.contended(ctx, CauseServersTaken)
		case len(tried) == MaxScanned:
			return w.contended(ctx, CauseScanLimit)
		}
		tried[c.Server.ID] = true
		if outcome, err := w.try(ctx, c); outcome != nil || err != nil {
			return outcome, err
		}
	}
}

// contended refuses because others had what fits. That is never said when nothing fits, and a list that is older than the
// request does not tell: if no list of this walk has shown a server that fitted, the database is read once more.
func (w *walk) contended(ctx context.Context, cause Cause) (*Outcome, error) {
	if !w.fitted {
		if err := w.lookAgain(ctx); err != nil {
			return nil, err
		}
	}
	if !w.fitted {
		return w.nothing(ctx)
	}
	return w.refuse(ctx, &Decision{Outcome: OutcomeContended, Cause: cause})
}

// next is the best candidate that was not tried yet.
func (w *walk) next(tried map[inventory.ServerID]bool) (Candidate, bool) {
	for i := range w.seen.ranked {
		if h := &w.seen.ranked[i]; !tried[h.id] {
			return h.candidate(), true
		}
	}
	return Candidate{}, false
}

// try tries one candidate; nil means that the next one is to be tried.
func (w *walk) try(ctx context.Context, c Candidate) (*Outcome, error) {
	choice := explainChoice(c, w.seen.servers, w.seen.eligible, w.walked)
	id := w.tx.NewDecisionID()
	*w.claims = append(*w.claims, w.known.claim(c.Server.ID))
	attempt := w.attempt(c, choice)
	attempt.Decision = id
	result, err := w.tx.Try(ctx, attempt)
	if err != nil {
		return nil, err
	}
	switch result.Outcome {
	case TryKeyTaken:
		return w.refuse(ctx, &Decision{Outcome: OutcomeContended, Cause: CauseSameKey})
	case TryLineTaken:
		return w.refuse(ctx, &Decision{Outcome: OutcomeContended, Cause: CauseSameOrderLine})
	case TrySkipped:
		w.skipped++
	case TryStale:
		w.stale++
	case TryLost:
		w.attempts++
	case TryReserved:
	}
	w.walked = append(w.walked, Walked{Server: c.Server.ID, Name: c.Server.Name, Rank: c.Rank, Outcome: result.Outcome})
	if result.Outcome != TryReserved {
		return nil, nil
	}
	d := &Decision{
		ID: id, Outcome: OutcomeReserved, Reservation: result.Reservation.ID, Made: result.Reservation, Choice: &choice,
	}
	outcome, err := w.decide(ctx, d, result.Reservation)
	if err == nil {
		outcome.HoldToken = w.token(result.Reservation)
	}
	return outcome, err
}

// attempt is the wish to reserve a candidate.
func (w *walk) attempt(c Candidate, choice Choice) Attempt {
	return Attempt{
		Question: w.question, Server: c.Server.ID, Wanted: w.seen.wanted, Fingerprint: w.fingerprint,
		Choice: choice, TokenKey: w.tokens.Current(), By: w.caller.Actor,
	}
}
