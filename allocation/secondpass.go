package allocation

import "context"

// secondPass tries the eligible servers one at a time in rank order. A skipped or stale candidate is no attempt, one
// lost in an insert race is; all of them count towards the scan.
func (w *walk) secondPass(ctx context.Context) (*Outcome, error) {
	ranked := rank(w.survey.eligible, w.req.IdempotencyKey)
	for i, c := range ranked {
		switch {
		case i == MaxScanned:
			return w.refuse(ctx, &Decision{Outcome: OutcomeContended, Cause: CauseScanLimit})
		case w.attempts == MaxAttempts:
			return w.refuse(ctx, &Decision{Outcome: OutcomeContended, Cause: CauseAttemptLimit})
		}
		if outcome, err := w.try(ctx, c); outcome != nil || err != nil {
			return outcome, err
		}
	}
	if w.attempts == MaxAttempts {
		return w.refuse(ctx, &Decision{Outcome: OutcomeContended, Cause: CauseAttemptLimit})
	}
	return w.refuse(ctx, &Decision{Outcome: OutcomeContended, Cause: CauseServersTaken})
}

// try tries one candidate; nil means that the next one is to be tried.
func (w *walk) try(ctx context.Context, c Candidate) (*Outcome, error) {
	choice := explainChoice(c, w.survey, w.walked)
	id := w.tx.NewDecisionID()
	result, err := w.tx.Try(ctx, Attempt{
		Question: w.question, Server: c.Server.ID, Requirements: &w.req.Requirements, Fingerprint: w.fingerprint,
		Choice: choice, Decision: id, TokenKey: w.tokens.Current(), By: w.caller.Actor,
	})
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
	d := &Decision{ID: id, Outcome: OutcomeReserved, Reservation: result.Reservation.ID, Choice: &choice}
	outcome, err := w.decide(ctx, d, result.Reservation)
	if err == nil {
		outcome.HoldToken = w.token(result.Reservation)
	}
	return outcome, err
}
