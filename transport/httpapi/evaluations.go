package httpapi

import (
	"context"
	"fmt"
	"iter"

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

// What an evaluation in JSON lists at the most; in lines it lists everything.
const (
	maxRanked   = 500
	maxRejected = 2000
)

// Evaluate implements wire.StrictServerInterface. A caller without support sees counts alone: the sentence about the
// server that would be chosen names it, and is replaced.
func (h *handlers) Evaluate(ctx context.Context, r wire.EvaluateRequestObject) (wire.EvaluateResponseObject, error) {
	if wantsLines(callOf(ctx).accept) {
		return h.evaluateInLines(ctx, r)
	}
	e, view, err := h.summary(ctx, r)
	if err != nil {
		return nil, err
	}
	if full(ctx) {
		view.Ranked = first(maxRanked, e.Ranked(), func(c allocation.Candidate) wire.RankedServer {
			return viewRanked(c, notes(c.Server.ID, e.UnderEdit))
		})
		view.Rejected = first(maxRejected, e.Rejected(), func(r allocation.Rejected) wire.Candidate {
			return wire.Candidate{
				ServerID: string(r.Server), Name: r.Name, Site: r.Site, Reasons: each(r.Verdict.Reasons(), viewReason),
				Notes: notes(r.Server, e.UnderEdit),
			}
		})
		view.LeftOut = leftOut(e.Eligible-len(view.Ranked), e.Servers-e.Eligible-len(view.Rejected))
	}
	return wire.Evaluate200JSONResponse(*view), nil
}

// summary evaluates, and says what does not depend on single servers.
func (h *handlers) summary(
	ctx context.Context, r wire.EvaluateRequestObject,
) (*allocation.Evaluation, *wire.Evaluation, error) {
	e, err := h.Evaluator.Evaluate(ctx, callerOf(ctx), r.Body.Key, requirements(r.Body.Requirements))
	if err != nil {
		return nil, nil, err
	}
	view := &wire.Evaluation{
		At: e.At.UTC(), Text: e.Text, Servers: e.Servers, Eligible: e.Eligible,
		Counts: viewCounts(e.Counts), Cause: wire.Cause(e.Cause), NextExpiryAt: viewTime(e.NextExpiryAt),
		Nearest: viewNearest(e.Nearest),
	}
	if !full(ctx) && e.Eligible > 0 {
		view.Text = fmt.Sprintf("Fitting and free at this instant: %d of %d.", view.Eligible, view.Servers)
	}
	return e, view, nil
}

// first shows the first of a list, never nil.
func first[From, To any](most int, list iter.Seq[From], view func(From) To) []To {
	shown := []To{}
	for one := range list {
		if len(shown) == most {
			break
		}
		shown = append(shown, view(one))
	}
	return shown
}

// leftOut says that lists were cut, and how to get all of it.
func leftOut(ranked, rejected int) wire.LeftOut {
	if ranked+rejected == 0 {
		return wire.LeftOut{}
	}
	return wire.LeftOut{
		Ranked: ranked, Rejected: rejected, Text: "Ask again with the header Accept: " + linesType + " to get every server, one to a line.",
	}
}

func viewRanked(c allocation.Candidate, noted wire.Notes) wire.RankedServer {
	return wire.RankedServer{Rank: c.Rank, Server: viewReserved(c.Server), Notes: noted}
}

// viewReason gives a reason its sentence.
func viewReason(r allocation.Reason) wire.Reason {
	text, remedy := allocation.Describe(r)
	return wire.Reason{Code: wire.ReasonCode(r.Code), Requirement: r.Requirement, Text: text, Remedy: remedy}
}

// setOf is for asking about many servers.
func setOf(servers []inventory.ServerID) map[inventory.ServerID]bool {
	set := make(map[inventory.ServerID]bool, len(servers))
	for _, id := range servers {
		set[id] = true
	}
	return set
}
