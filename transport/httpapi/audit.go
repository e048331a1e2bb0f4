package httpapi

import (
	"context"

	"allocator/events"
	"allocator/identity"
	"allocator/transport/httpapi/wire"
)

// AuditReader reads the audit trail.
type AuditReader interface {
	// Page reads a part of the trail. Errors: events.ErrCursorInvalid.
	Page(ctx context.Context, query events.AuditQuery) (events.AuditPage, error)
}

// ListAudit implements wire.StrictServerInterface.
func (h *handlers) ListAudit(ctx context.Context, r wire.ListAuditRequestObject) (wire.ListAuditResponseObject, error) {
	caller := callerOf(ctx)
	query := events.AuditQuery{
		OrganizationID: string(caller.Organization), All: caller.Scopes.Has(identity.ScopePlatform), After: r.Params.After,
		Limit: defaultPage,
	}
	if r.Params.PageSize > 0 {
		query.Limit = int(min(r.Params.PageSize, maxPage))
	}
	found, err := h.Audit.Page(ctx, query)
	if err != nil {
		return nil, err
	}
	return wire.ListAudit200JSONResponse{Items: each(found.Entries, viewAudit), NextAfter: found.Next}, nil
}

func viewAudit(e events.AuditEntry) wire.AuditEntry {
	return wire.AuditEntry{
		ID: e.ID, OrganizationID: e.OrganizationID, At: e.At.UTC(), By: wire.Actor{Kind: e.ActorKind, ID: e.ActorID},
		Action: e.Action, Subject: e.Subject, Outcome: e.Outcome, RequestID: e.RequestID, Detail: e.Detail,
	}
}
