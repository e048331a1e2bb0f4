package httpapi

import (
	"context"
	"slices"
	"strconv"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/transport/httpapi/wire"
)

// ListCandidates implements wire.StrictServerInterface. The rows of a frozen list never change, so a page begins behind
// a position in it.
func (h *handlers) ListCandidates(
	ctx context.Context, r wire.ListCandidatesRequestObject,
) (wire.ListCandidatesResponseObject, error) {
	p, err := newPage(callerOf(ctx), "candidates", []any{r.DecisionID, r.Params.Reason}, r.Params.PageSize, r.Params.PageToken)
	if err != nil {
		return nil, err
	}
	d, err := h.Decisions.DecisionByID(ctx, callerOf(ctx), allocation.DecisionID(r.DecisionID))
	if err != nil {
		return nil, err
	}
	begin := 0
	if p.after != "" {
		if begin, err = strconv.Atoi(p.after); err != nil || begin < 0 {
			return nil, errPageToken()
		}
	}
	rows := matching(candidatesOf(d), r.Params.Reason)
	rows, next := cut(p, rows[min(begin, len(rows)):], func(wire.Candidate) string { return strconv.Itoa(begin + p.limit) })
	return wire.ListCandidates200JSONResponse{Items: rows, NextPageToken: next, Sampled: d.Frozen.Sampled}, nil
}

// matching keeps the candidates that have one of the reasons; no reasons keep all.
func matching(rows []wire.Candidate, reasons []wire.ReasonCode) []wire.Candidate {
	if len(reasons) == 0 {
		return rows
	}
	return slices.DeleteFunc(rows, func(c wire.Candidate) bool {
		return !slices.ContainsFunc(c.Reasons, func(r wire.Reason) bool { return slices.Contains(reasons, r.Code) })
	})
}

// candidatesOf shows the frozen list. Of a server that did not fit it says why, of one that fitted what became of it.
func candidatesOf(d *allocation.Decision) []wire.Candidate {
	words := map[allocation.Reason]wire.Reason{}
	for _, c := range d.Counts { // the sentences of the day on which it was decided
		words[c.Reason] = wire.Reason{Code: wire.ReasonCode(c.Code), Requirement: c.Requirement, Text: c.Text, Remedy: c.Remedy}
	}
	return each(d.Frozen.Candidates, func(f allocation.FrozenCandidate) wire.Candidate {
		row := wire.Candidate{
			ServerID: string(f.Server), Name: f.Name, Site: f.Site, Eligible: len(f.Reasons) == 0, Notes: notes(f.Server, d.UnderEdit),
		}
		if row.Eligible {
			row.Reasons = []wire.Reason{viewReason(allocation.Reason{Code: fate(d, f)})}
			return row
		}
		row.Reasons = each(f.Reasons, func(r allocation.Reason) wire.Reason {
			if said, ok := words[r]; ok {
				return said
			}
			return viewReason(r)
		})
		return row
	})
}

// notes are what is said of a server beside its reasons.
func notes(id inventory.ServerID, underEdit []inventory.ServerID) wire.Notes {
	if !slices.Contains(underEdit, id) {
		return nil
	}
	text, remedy := allocation.DescribeUnderEdit()
	return wire.Notes{{Code: wire.NoteCode(allocation.CodeUnderEdit), Text: text, Remedy: remedy}}
}

// fate tells what became of a server that fitted.
func fate(d *allocation.Decision, f allocation.FrozenCandidate) allocation.Code {
	i := slices.IndexFunc(d.Walked, func(w allocation.Walked) bool { return w.Server == f.Server })
	switch {
	case i >= 0:
		return allocation.Code(d.Walked[i].Outcome)
	case d.Choice != nil:
		return allocation.CodeOutranked
	default:
		return allocation.CodeNotExamined
	}
}
