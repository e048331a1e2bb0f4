package httpapi

import (
	"cmp"
	"context"

	"allocator/identity"
	"allocator/reservation"
	"allocator/transport/httpapi/strictjson"
	"allocator/transport/httpapi/wire"
)

// ReservationChanger is what becomes of a reservation after it was made. Errors: those of package reservation.
type ReservationChanger interface {
	// Renew moves the deadline.
	Renew(ctx context.Context, caller identity.Caller, id reservation.ID, token string) (*reservation.Reservation, error)
	// Cancel gives the reservation up.
	Cancel(
		ctx context.Context, caller identity.Caller, id reservation.ID, token string, cancel reservation.Cancellation,
	) (*reservation.Reservation, error)
	// Convert sells the server to a service.
	Convert(ctx context.Context, caller identity.Caller, id reservation.ID, token, serviceID string) (*reservation.Conversion, error)
	// TakeOver hands the hold to the caller.
	TakeOver(ctx context.Context, caller identity.Caller, id reservation.ID, reason string) (*reservation.Reservation, error)
	// HoldToken returns the proof of holding r.
	HoldToken(r *reservation.Reservation) string
}

// RenewReservation implements wire.StrictServerInterface.
func (h *handlers) RenewReservation(
	ctx context.Context, r wire.RenewReservationRequestObject,
) (wire.RenewReservationResponseObject, error) {
	renewed, err := h.ReservationChanges.Renew(ctx, callerOf(ctx), reservation.ID(r.ReservationID), r.Params.HoldToken)
	if err != nil {
		return nil, err
	}
	view, err := viewReservation(ctx, renewed)
	return wire.RenewReservation200JSONResponse{
		Body: view, Headers: wire.RenewReservation200ResponseHeaders{ETag: reservationTag(renewed)},
	}, err
}

// CancelReservation implements wire.StrictServerInterface. A checkout need not say why; staff do.
func (h *handlers) CancelReservation(
	ctx context.Context, r wire.CancelReservationRequestObject,
) (wire.CancelReservationResponseObject, error) {
	var body wire.CancelRequest
	if r.Body != nil {
		body = *r.Body
	}
	caller := callerOf(ctx)
	if !caller.Scopes.Has(identity.ScopeCheckout) {
		if err := mustSayWhy(body); err != nil {
			return nil, err
		}
	}
	why := reservation.Cancellation{
		Reason: cmp.Or(reservation.CancelReason(body.ReasonCode), reservation.CancelOther), Text: body.Text,
	}
	cancelled, err := h.ReservationChanges.Cancel(ctx, caller, reservation.ID(r.ReservationID), r.Params.HoldToken, why)
	if err != nil {
		return nil, err
	}
	view, err := viewReservation(ctx, cancelled)
	return wire.CancelReservation200JSONResponse{
		Body: view, Headers: wire.CancelReservation200ResponseHeaders{ETag: reservationTag(cancelled)},
	}, err
}

func mustSayWhy(body wire.CancelRequest) error {
	var faults []strictjson.Fault
	if body.ReasonCode == "" {
		faults = append(faults, saysNot("/reason_code"))
	}
	if body.Text == "" {
		faults = append(faults, saysNot("/text"))
	}
	return refuseFaults(faults)
}

func saysNot(pointer string) strictjson.Fault {
	return strictjson.Fault{Pointer: pointer, Code: strictjson.CodeRequired, Detail: "Staff say why they cancel."}
}

// ConvertReservation implements wire.StrictServerInterface.
func (h *handlers) ConvertReservation(
	ctx context.Context, r wire.ConvertReservationRequestObject,
) (wire.ConvertReservationResponseObject, error) {
	done, err := h.ReservationChanges.Convert(ctx, callerOf(ctx), reservation.ID(r.ReservationID), r.Params.HoldToken, r.Body.ServiceID)
	if err != nil {
		return nil, err
	}
	note(ctx, "binding_id", done.Binding.ID)
	view, tag := viewBinding(done.Binding), etag(done.Binding.Version)
	if done.Repeated {
		return wire.ConvertReservation200JSONResponse{
			Body: view, Headers: wire.ConvertReservation200ResponseHeaders{ETag: tag},
		}, nil
	}
	return wire.ConvertReservation201JSONResponse{Body: view, Headers: wire.ConvertReservation201ResponseHeaders{
		ETag: tag, Location: "/v1/bindings/" + string(done.Binding.ID),
	}}, nil
}

// TakeOverReservation implements wire.StrictServerInterface.
func (h *handlers) TakeOverReservation(
	ctx context.Context, r wire.TakeOverReservationRequestObject,
) (wire.TakeOverReservationResponseObject, error) {
	taken, err := h.ReservationChanges.TakeOver(ctx, callerOf(ctx), reservation.ID(r.ReservationID), r.Body.Reason)
	if err != nil {
		return nil, err
	}
	view, err := viewReservation(ctx, taken)
	token := h.ReservationChanges.HoldToken(taken)
	view.HoldToken = &token
	return wire.TakeOverReservation200JSONResponse{
		Body: view, Headers: wire.TakeOverReservation200ResponseHeaders{ETag: reservationTag(taken)},
	}, err
}
