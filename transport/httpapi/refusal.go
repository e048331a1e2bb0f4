package httpapi

import (
	"time"

	"allocator/allocation"
	"allocator/transport/httpapi/wire"
)

// refusal is the answer to a request that got no reservation. It tells counts alone: no identity of another order's
// server, whoever asks. Support reads the rest in the decision.
func refusal(outcome *allocation.Outcome) *problem {
	p := newProblem(string(outcome.Code))
	d := outcome.Decision
	p.detail = d.Text
	p.fill = func(body *wire.Problem) {
		body.DecisionID, body.Cause = string(d.ID), wire.Cause(d.Cause)
		switch outcome.Code {
		case allocation.OutcomeContended:
			body.Skipped, body.Stale, body.Attempts = &d.Skipped, &d.Stale, &d.Attempts
		case allocation.OutcomeNoCapacity:
			body.Counts, body.Nearest, body.NextExpiryAt = viewCounts(d.Counts), viewNearest(d.Nearest), timeOrZero(d.NextExpiryAt)
		case allocation.OutcomeOrderLineHeld:
			body.ReservationID = string(d.Reservation)
		default:
		}
		body.Action = wire.Action(actionOf(outcome.Code, d.Cause, p.action))
	}
	switch outcome.Code {
	case allocation.OutcomeContended:
		return p.retryShortly()
	case allocation.OutcomeOrderLineHeld:
		p.header.Set("Link", "</v1/reservations/"+string(d.Reservation)+`>; rel="related"`)
	default:
	}
	return p
}

// actionOf refines the table's action by the cause: when everything that fits is held, waiting helps.
func actionOf(code allocation.OutcomeCode, cause allocation.Cause, action string) string {
	switch {
	case cause == allocation.CauseAllHeld:
		return actionWaitUntil
	case code == allocation.OutcomeNoCapacity && cause == allocation.CauseInventoryEmpty:
		return actionContactSupport
	default:
		return action
	}
}

func timeOrZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}
