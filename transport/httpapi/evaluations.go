package httpapi

import (
	"context"
	"fmt"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/transport/httpapi/wire"
)

// Evaluator judges the inventory without writing anything.
type Evaluator interface {
	// Evaluate judges every server. Errors: allocation.ErrFeatureDisabled.
	Evaluate(ctx context.Context, caller identity.Caller, key string, wanted allocation.Requirements) (*allocation.Evaluation, error)
}

// What an evaluation lists at the most.
const (
	maxRanked   = 500
	maxRejected = 2000
)

// Evaluate implements wire.StrictServerInterface. A caller without support sees counts alone: the sentence about the
// server that would be chosen names it, and is replaced.
func (h *handlers) Evaluate(ctx context.Context, r wire.EvaluateRequestObject) (wire.EvaluateResponseObject, error) {
	e, err := h.Evaluator.Evaluate(ctx, callerOf(ctx), r.Body.Key, requirements(r.Body.Requirements))
	if err != nil {
		return nil, err
	}
	view := wire.Evaluation{
		At: e.At.UTC(), Text: e.Text, Servers: len(e.Survey.Judged), Eligible: len(e.Ranked),
		Counts: viewCounts(e.Survey.Counts()), Cause: wire.Cause(e.Cause), NextExpiryAt: viewTime(e.NextExpiryAt),
		Nearest: viewNearest(e.Nearest),
	}
	if full(ctx) {
		view.Ranked = each(e.Ranked[:min(len(e.Ranked), maxRanked)], func(c allocation.Candidate) wire.RankedServer {
			return wire.RankedServer{Rank: c.Rank, Server: viewReserved(c.Server), Notes: notes(c.Server.ID, e.UnderEdit)}
		})
		view.Rejected = rejected(e.Survey, e.UnderEdit)
	} else if view.Eligible > 0 {
		view.Text = fmt.Sprintf("Fitting and free at this instant: %d of %d.", view.Eligible, view.Servers)
	}
	return wire.Evaluate200JSONResponse(view), nil
}

// rejected lists the servers that do not fit, each with every reason.
func rejected(survey *allocation.Survey, underEdit []inventory.ServerID) []wire.Candidate {
	list := []wire.Candidate{}
	for _, j := range survey.Judged {
		if j.Verdict.Eligible() || len(list) == maxRejected {
			continue
		}
		s := &j.Facts.Server
		list = append(list, wire.Candidate{
			ServerID: string(s.ID), Name: s.Name, Site: s.Site, Reasons: each(j.Verdict.Reasons(), viewReason),
			Notes: notes(s.ID, underEdit),
		})
	}
	return list
}

// viewReason gives a reason its sentence.
func viewReason(r allocation.Reason) wire.Reason {
	text, remedy := allocation.Describe(r)
	return wire.Reason{Code: wire.ReasonCode(r.Code), Requirement: r.Requirement, Text: text, Remedy: remedy}
}
