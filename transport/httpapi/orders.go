package httpapi

import (
	"context"
	"slices"

	"allocator/allocation"
	"allocator/events"
	"allocator/identity"
	"allocator/reservation"
	"allocator/transport/httpapi/wire"
)

// EventReader reads what happened to an order.
type EventReader interface {
	// EventsOfOrder lists oldest first.
	EventsOfOrder(ctx context.Context, organizationID, orderID string) ([]events.Event, error)
}

// maxOfOrder bounds each list of an order; a storm of refusals can have left thousands of decisions.
const maxOfOrder = 500

// GetOrder implements wire.StrictServerInterface. An order of which there is no trace is not found.
func (h *handlers) GetOrder(ctx context.Context, r wire.GetOrderRequestObject) (wire.GetOrderResponseObject, error) {
	caller, ids := callerOf(ctx), []string{r.OrderID}
	reservations, err := h.Reservations.Reservations(ctx, caller, reservation.Filter{OrderIDs: ids, Limit: maxOfOrder + 1})
	if err != nil {
		return nil, err
	}
	decisions, err := h.Decisions.Decisions(ctx, caller, allocation.DecisionFilter{OrderIDs: ids, Limit: maxOfOrder + 1})
	if err != nil {
		return nil, err
	}
	bindings, err := h.Bindings.Bindings(ctx, caller, reservation.BindingFilter{OrderIDs: ids, Limit: maxOfOrder + 1})
	if err != nil {
		return nil, err
	}
	happened, err := h.Events.EventsOfOrder(ctx, string(caller.Organization), r.OrderID)
	if err != nil {
		return nil, err
	}
	if len(reservations)+len(decisions)+len(bindings)+len(happened) == 0 {
		return nil, reservation.ErrNotFound
	}
	return viewOrder(ctx, r.OrderID, reservations, decisions, bindings, happened)
}

func viewOrder(
	ctx context.Context, id string, reservations []*reservation.Reservation, decisions []*allocation.Decision,
	bindings []*reservation.Binding, happened []events.Event,
) (wire.GetOrderResponseObject, error) {
	view := wire.Order{OrderID: id}
	reserved, err := viewReservations(ctx, oldestFirst(reservations, &view.Truncated))
	if err != nil {
		return nil, err
	}
	slices.Reverse(happened) // they come oldest first, and the newest are kept
	view.Reservations = reserved
	view.Decisions = each(oldestFirst(decisions, &view.Truncated), viewDecision)
	view.Bindings = each(oldestFirst(bindings, &view.Truncated), viewBinding)
	view.Events = each(oldestFirst(happened, &view.Truncated), viewEvent)
	return wire.GetOrder200JSONResponse(view), nil
}

// oldestFirst keeps the newest rows and turns them around.
func oldestFirst[T any](newestFirst []T, truncated *bool) []T {
	if len(newestFirst) > maxOfOrder {
		newestFirst, *truncated = newestFirst[:maxOfOrder], true
	}
	slices.Reverse(newestFirst)
	return newestFirst
}

func viewEvent(e events.Event) wire.Event {
	return wire.Event{
		ID: e.ID, Type: string(e.Type), At: e.At.UTC(),
		By:            viewActor(&identity.Actor{Kind: identity.ActorKind(e.ActorKind), ID: e.ActorID}),
		ReservationID: e.ReservationID, BindingID: e.BindingID, ServerID: e.ServerID, OrderID: e.OrderID, DecisionID: e.DecisionID,
		Data: e.Data,
	}
}
