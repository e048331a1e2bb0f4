package httpapi

import (
	"context"

	"allocator/allocation"
	"allocator/identity"
	"allocator/transport/httpapi/wire"
)

// DecisionReader reads frozen decisions.
type DecisionReader interface {
	// DecisionByID reads one with the list it froze. Errors: reservation.ErrNotFound, allocation.ErrDecisionGone.
	DecisionByID(ctx context.Context, caller identity.Caller, id allocation.DecisionID) (*allocation.Decision, error)
	// Decisions lists newest first, without the frozen lists.
	Decisions(ctx context.Context, caller identity.Caller, filter allocation.DecisionFilter) ([]*allocation.Decision, error)
}

// ListDecisions implements wire.StrictServerInterface.
func (h *handlers) ListDecisions(
	ctx context.Context, r wire.ListDecisionsRequestObject,
) (wire.ListDecisionsResponseObject, error) {
	filter := allocation.DecisionFilter{
		OrderIDs: r.Params.OrderID,
		Outcomes: each(r.Params.Outcome, func(o wire.DecisionOutcome) allocation.OutcomeCode { return allocation.OutcomeCode(o) }),
	}
	p, err := newPage(callerOf(ctx), "decisions", filter, r.Params.PageSize, r.Params.PageToken)
	if err != nil {
		return nil, err
	}
	if !p.isID("dec_") {
		return nil, errPageToken()
	}
	filter.After, filter.Limit = allocation.DecisionID(p.after), p.limit+1
	list, err := h.Decisions.Decisions(ctx, callerOf(ctx), filter)
	if err != nil {
		return nil, err
	}
	list, next := cut(p, list, func(d *allocation.Decision) string { return string(d.ID) })
	return wire.ListDecisions200JSONResponse{Items: each(list, viewDecision), NextPageToken: next}, nil
}

// GetDecision implements wire.StrictServerInterface.
func (h *handlers) GetDecision(
	ctx context.Context, r wire.GetDecisionRequestObject,
) (wire.GetDecisionResponseObject, error) {
	d, err := h.Decisions.DecisionByID(ctx, callerOf(ctx), allocation.DecisionID(r.DecisionID))
	if err != nil {
		return nil, err
	}
	return wire.GetDecision200JSONResponse(viewDecision(d)), nil
}

// viewDecision shows a decision to support, in the words of its day.
func viewDecision(d *allocation.Decision) wire.Decision {
	return wire.Decision{
		ID: string(d.ID), CreatedAt: d.CreatedAt.UTC(), OrderID: d.Order.OrderID, OrderLine: d.Order.Line, Unit: d.Order.Unit,
		Outcome: wire.DecisionOutcome(d.Outcome), Cause: wire.Cause(d.Cause), ReservationID: string(d.Reservation),
		By: viewActor(&d.By), Text: d.Text, Requirements: d.Requirements, SeenAt: viewTime(d.SeenAt),
		Servers: d.Servers, Eligible: d.Eligible, Counts: viewCounts(d.Counts), Walked: viewWalked(d.Walked, d.UnderEdit),
		Nearest: viewNearest(d.Nearest), NextExpiryAt: viewTime(d.NextExpiryAt), Choice: viewChoice(d.Choice, true),
		Skipped: d.Skipped, Stale: d.Stale, Attempts: d.Attempts, Walks: d.Walks,
	}
}
