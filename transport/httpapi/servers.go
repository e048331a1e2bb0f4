package httpapi

import (
	"context"

	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/transport/httpapi/wire"
)

// Servers keeps the records of servers.
type Servers interface {
	// Create adds one. Errors: inventory.InvalidError, ErrExists.
	Create(ctx context.Context, by inventory.Change, server inventory.Server) (inventory.Server, error)
	// Get reads one. Errors: inventory.ErrNotFound.
	Get(ctx context.Context, org string, id inventory.ServerID) (inventory.Server, error)
	// List reads those that the filter lets through, in the order of their ids. Errors: inventory.InvalidError.
	List(ctx context.Context, org string, filter inventory.Filter) ([]inventory.Server, error)
	// Update changes one if it is still at ifVersion; 0 is any. Errors: inventory.ErrNotFound, VersionError, InvalidError,
	// ErrInUse.
	Update(
		ctx context.Context, by inventory.Change, id inventory.ServerID, patch inventory.Patch, ifVersion int64,
	) (inventory.Server, error)
}

// ServerStates moves servers between states.
type ServerStates interface {
	// ChangeServerState moves one. Errors: reservation.ErrNotFound, ErrServerInUse, ErrStaleFence, lease.HeldError,
	// LostError, ErrEditRefused.
	ChangeServerState(ctx context.Context, caller identity.Caller, change reservation.StateChange) (*inventory.Server, error)
}

// editedBy says to the inventory on whose behalf it writes, and whose edit leases count.
func editedBy(caller identity.Caller, stated string) inventory.Change {
	return inventory.Change{
		Organization: string(caller.Organization),
		ActorKind:    string(caller.Actor.Kind), ActorID: caller.Actor.ID, RequestID: caller.RequestID,
		Editor: holderID(caller, stated),
	}
}

// ListServers implements wire.StrictServerInterface.
func (h *handlers) ListServers(
	ctx context.Context, r wire.ListServersRequestObject,
) (wire.ListServersResponseObject, error) {
	filter := inventory.Filter{
		Sites: r.Params.Site, Racks: r.Params.Rack, Models: r.Params.Model, Serials: r.Params.Serial, Names: r.Params.Name,
		States: each(r.Params.State, func(s wire.ServerState) inventory.State { return inventory.State(s) }),
		Query:  r.Params.Q,
	}
	caller := callerOf(ctx)
	p, err := newPage(caller, "servers", filter, r.Params.PageSize, r.Params.PageToken)
	if err != nil {
		return nil, err
	}
	if !p.isID("srv_") {
		return nil, errPageToken()
	}
	filter.After, filter.Limit = inventory.ServerID(p.after), p.limit+1
	list, err := h.Servers.List(ctx, string(caller.Organization), filter)
	if err != nil {
		return nil, queryFaults(err)
	}
	list, next := cut(p, list, func(s inventory.Server) string { return string(s.ID) })
	views := each(list, func(s inventory.Server) wire.Server { return viewServer(&s) })
	return wire.ListServers200JSONResponse{Items: views, NextPageToken: next}, nil
}

// CreateServer implements wire.StrictServerInterface.
func (h *handlers) CreateServer(
	ctx context.Context, r wire.CreateServerRequestObject,
) (wire.CreateServerResponseObject, error) {
	made, err := h.Servers.Create(ctx, editedBy(callerOf(ctx), r.Params.LeaseHolder), newServer(r.Body))
	if err != nil {
		return nil, err
	}
	note(ctx, "server_id", made.ID)
	return wire.CreateServer201JSONResponse{Body: viewServer(&made), Headers: wire.CreateServer201ResponseHeaders{
		ETag: etag(made.Version), Location: "/v1/servers/" + string(made.ID),
	}}, nil
}

// GetServer implements wire.StrictServerInterface.
func (h *handlers) GetServer(ctx context.Context, r wire.GetServerRequestObject) (wire.GetServerResponseObject, error) {
	s, err := h.Servers.Get(ctx, string(callerOf(ctx).Organization), inventory.ServerID(r.ServerID))
	if err != nil {
		return nil, err
	}
	return wire.GetServer200JSONResponse{
		Body: viewServer(&s), Headers: wire.GetServer200ResponseHeaders{ETag: etag(s.Version)},
	}, nil
}

// stateEditor is whose edit lease a change of state needs: a person's. A program shows the lock that it works under.
func stateEditor(caller identity.Caller, r wire.SetServerStateRequestObject) string {
	if r.Body.Lock.Key != "" {
		return ""
	}
	return holderID(caller, r.Params.LeaseHolder)
}

// SetServerState implements wire.StrictServerInterface.
func (h *handlers) SetServerState(
	ctx context.Context, r wire.SetServerStateRequestObject,
) (wire.SetServerStateResponseObject, error) {
	s, err := h.ServerStates.ChangeServerState(ctx, callerOf(ctx), reservation.StateChange{
		ServerID: inventory.ServerID(r.ServerID), State: inventory.State(r.Body.State), Reason: r.Body.Reason, Force: r.Body.Force,
		Lock:   reservation.LockProof{Key: r.Body.Lock.Key, Fence: r.Body.Lock.Fence},
		Editor: stateEditor(callerOf(ctx), r),
	})
	if err != nil {
		return nil, err
	}
	return wire.SetServerState200JSONResponse{
		Body: viewServer(s), Headers: wire.SetServerState200ResponseHeaders{ETag: etag(s.Version)},
	}, nil
}
