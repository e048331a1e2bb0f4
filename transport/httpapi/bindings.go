package httpapi

import (
	"context"

	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/transport/httpapi/wire"
)

// Bindings reads service bindings, ends them, and records those that were there before.
type Bindings interface {
	// Binding reads one. Errors: reservation.ErrNotFound.
	Binding(ctx context.Context, caller identity.Caller, id reservation.BindingID) (*reservation.Binding, error)
	// Bindings lists newest first.
	Bindings(ctx context.Context, caller identity.Caller, filter reservation.BindingFilter) ([]*reservation.Binding, error)
	// BindDirectly records one. Errors: reservation.ErrNotFound, ErrServerInUse, ErrServiceAlreadyBound.
	BindDirectly(ctx context.Context, caller identity.Caller, bind reservation.DirectBinding) (*reservation.Binding, error)
	// EndBinding ends one. Errors: reservation.ErrNotFound.
	EndBinding(ctx context.Context, caller identity.Caller, id reservation.BindingID, end reservation.Ending) (*reservation.Binding, error)
}

// ListBindings implements wire.StrictServerInterface.
func (h *handlers) ListBindings(
	ctx context.Context, r wire.ListBindingsRequestObject,
) (wire.ListBindingsResponseObject, error) {
	filter := reservation.BindingFilter{
		ServerIDs:  each(r.Params.ServerID, func(id wire.ServerID) inventory.ServerID { return inventory.ServerID(id) }),
		ServiceIDs: r.Params.ServiceID, OrderIDs: r.Params.OrderID, Active: r.Params.Active,
	}
	p, err := newPage(callerOf(ctx), "bindings", filter, r.Params.PageSize, r.Params.PageToken)
	if err != nil {
		return nil, err
	}
	if !p.isID("bnd_") {
		return nil, errPageToken()
	}
	filter.After, filter.Limit = reservation.BindingID(p.after), p.limit+1
	list, err := h.Bindings.Bindings(ctx, callerOf(ctx), filter)
	if err != nil {
		return nil, err
	}
	list, next := cut(p, list, func(b *reservation.Binding) string { return string(b.ID) })
	return wire.ListBindings200JSONResponse{Items: each(list, viewBinding), NextPageToken: next}, nil
}

// CreateBinding implements wire.StrictServerInterface.
func (h *handlers) CreateBinding(
	ctx context.Context, r wire.CreateBindingRequestObject,
) (wire.CreateBindingResponseObject, error) {
	made, err := h.Bindings.BindDirectly(ctx, callerOf(ctx), reservation.DirectBinding{
		ServerID: inventory.ServerID(r.Body.ServerID), ServiceID: r.Body.ServiceID, Since: r.Body.Since, Reason: r.Body.Reason,
	})
	if err != nil {
		return nil, err
	}
	note(ctx, "binding_id", made.ID)
	return wire.CreateBinding201JSONResponse{Body: viewBinding(made), Headers: wire.CreateBinding201ResponseHeaders{
		ETag: etag(made.Version), Location: "/v1/bindings/" + string(made.ID),
	}}, nil
}

// GetBinding implements wire.StrictServerInterface.
func (h *handlers) GetBinding(
	ctx context.Context, r wire.GetBindingRequestObject,
) (wire.GetBindingResponseObject, error) {
	b, err := h.Bindings.Binding(ctx, callerOf(ctx), reservation.BindingID(r.BindingID))
	if err != nil {
		return nil, err
	}
	return wire.GetBinding200JSONResponse{
		Body: viewBinding(b), Headers: wire.GetBinding200ResponseHeaders{ETag: etag(b.Version)},
	}, nil
}

// EndBinding implements wire.StrictServerInterface.
func (h *handlers) EndBinding(
	ctx context.Context, r wire.EndBindingRequestObject,
) (wire.EndBindingResponseObject, error) {
	b, err := h.Bindings.EndBinding(ctx, callerOf(ctx), reservation.BindingID(r.BindingID), reservation.Ending{
		Reason: r.Body.Reason, DeliveryFailed: r.Body.DeliveryFailed,
	})
	if err != nil {
		return nil, err
	}
	return wire.EndBinding200JSONResponse{
		Body: viewBinding(b), Headers: wire.EndBinding200ResponseHeaders{ETag: etag(b.Version)},
	}, nil
}

func viewBinding(b *reservation.Binding) wire.Binding {
	return wire.Binding{
		ID: string(b.ID), Active: b.Active(), Server: viewReserved(&b.Server), ServiceID: b.ServiceID, Fence: b.Fence,
		ReservationID: string(b.ReservationID), OrderID: b.Order.OrderID, OrderLine: b.Order.Line, Unit: b.Order.Unit,
		Since: b.Since.UTC(), CreatedAt: b.CreatedAt.UTC(), CreatedBy: viewActor(&b.CreatedBy), Reason: b.Reason,
		EndedAt: viewTime(b.EndedAt), EndedBy: viewActor(b.EndedBy), EndReason: b.EndReason, DeliveryFailed: b.DeliveryFailed,
	}
}
