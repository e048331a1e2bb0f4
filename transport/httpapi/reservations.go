package httpapi

import (
	"cmp"
	"context"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/transport/httpapi/wire"
)

// Reserver makes reservations.
type Reserver interface {
	// Reserve answers one request. A refusal is an outcome; an error is allocation.ErrIdempotencyMismatch or a failure.
	Reserve(ctx context.Context, caller identity.Caller, req allocation.Request) (*allocation.Outcome, error)
}

// ReservationReader reads reservations.
type ReservationReader interface {
	// Reservation reads one. Errors: reservation.ErrNotFound.
	Reservation(ctx context.Context, caller identity.Caller, id reservation.ID) (*reservation.Reservation, error)
	// Reservations lists newest first.
	Reservations(ctx context.Context, caller identity.Caller, filter reservation.Filter) ([]*reservation.Reservation, error)
}

// CreateReservation implements wire.StrictServerInterface.
func (h *handlers) CreateReservation(
	ctx context.Context, r wire.CreateReservationRequestObject,
) (wire.CreateReservationResponseObject, error) {
	note(ctx, "order_id", r.Body.OrderID)
	outcome, err := h.Reserver.Reserve(ctx, callerOf(ctx), allocation.Request{
		IdempotencyKey: r.Params.IdempotencyKey,
		Order:          reservation.OrderLine{OrderID: r.Body.OrderID, Line: r.Body.OrderLine, Unit: cmp.Or(r.Body.Unit, 1)},
		CustomerRef:    r.Body.CustomerRef,
		Requirements:   requirements(r.Body.Requirements),
		Wait:           wait(r.Params.Prefer),
	})
	if err != nil {
		return nil, err
	}
	waited := applied(r.Params.Prefer)
	if outcome.Refused() {
		note(ctx, "decision_id", outcome.Decision.ID)
		p := refusal(outcome)
		if waited != nil {
			p.header.Set("Preference-Applied", *waited)
		}
		return nil, p
	}
	return h.reserved(ctx, outcome, waited)
}

// reserved answers with the reservation, a new one or the one that was there.
func (h *handlers) reserved(
	ctx context.Context, outcome *allocation.Outcome, waited *string,
) (wire.CreateReservationResponseObject, error) {
	r := outcome.Reservation
	note(ctx, "reservation_id", r.ID)
	note(ctx, "decision_id", r.DecisionID)
	view, err := viewReservation(ctx, r)
	if err != nil {
		return nil, err
	}
	if outcome.HoldToken != "" {
		view.HoldToken = &outcome.HoldToken
	}
	tag := reservationTag(r)
	if outcome.Code == allocation.OutcomeReserved {
		return wire.CreateReservation201JSONResponse{Body: view, Headers: wire.CreateReservation201ResponseHeaders{
			ETag: tag, Location: "/v1/reservations/" + string(r.ID), PreferenceApplied: waited,
		}}, nil
	}
	return wire.CreateReservation200JSONResponse{Body: view, Headers: wire.CreateReservation200ResponseHeaders{
		ETag: tag, IdempotentReplayed: "true", PreferenceApplied: waited,
	}}, nil
}

// ListReservations implements wire.StrictServerInterface.
func (h *handlers) ListReservations(
	ctx context.Context, r wire.ListReservationsRequestObject,
) (wire.ListReservationsResponseObject, error) {
	filter := reservation.Filter{
		OrderIDs:      r.Params.OrderID,
		States:        each(r.Params.State, func(s wire.ReservationState) reservation.State { return reservation.State(s) }),
		ServerIDs:     each(r.Params.ServerID, func(id wire.ServerID) inventory.ServerID { return inventory.ServerID(id) }),
		ExpiresBefore: r.Params.ExpiresBefore,
	}
	p, err := newPage(callerOf(ctx), "reservations", filter, r.Params.PageSize, r.Params.PageToken)
	if err != nil {
		return nil, err
	}
	if !p.isID("res_") {
		return nil, errPageToken()
	}
	filter.After, filter.Limit = reservation.ID(p.after), p.limit+1
	list, err := h.Reservations.Reservations(ctx, callerOf(ctx), filter)
	if err != nil {
		return nil, err
	}
	list, next := cut(p, list, func(r *reservation.Reservation) string { return string(r.ID) })
	views, err := viewReservations(ctx, list)
	return wire.ListReservations200JSONResponse{Items: views, NextPageToken: next}, err
}

// GetReservation implements wire.StrictServerInterface.
func (h *handlers) GetReservation(
	ctx context.Context, r wire.GetReservationRequestObject,
) (wire.GetReservationResponseObject, error) {
	found, err := h.Reservations.Reservation(ctx, callerOf(ctx), reservation.ID(r.ReservationID))
	if err != nil {
		return nil, err
	}
	view, err := viewReservation(ctx, found)
	return wire.GetReservation200JSONResponse{
		Body: view, Headers: wire.GetReservation200ResponseHeaders{ETag: reservationTag(found)},
	}, err
}
