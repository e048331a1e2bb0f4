package httpapi

import (
	"context"
	"encoding/json"
	"fmt"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/transport/httpapi/wire"
)

// viewReservation shows a reservation. What was asked and with which key is for support.
func viewReservation(ctx context.Context, r *reservation.Reservation) (wire.Reservation, error) {
	var choice allocation.Choice
	if err := json.Unmarshal(r.Reason, &choice); err != nil {
		return wire.Reservation{}, fmt.Errorf("the frozen reason of reservation %s cannot be read: %w", r.ID, err)
	}
	view := wire.Reservation{
		ID: string(r.ID), State: wire.ReservationState(r.State), OrderID: r.Order.OrderID, OrderLine: r.Order.Line,
		Unit: r.Order.Unit, CustomerRef: r.CustomerRef, Server: viewReserved(&r.Server),
		CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(), MaxExpiresAt: r.MaxExpiresAt.UTC(),
		TakenOver: r.TakenOver(), Fence: r.Fence, DecisionID: r.DecisionID, Reason: viewChoice(&choice, full(ctx)),
		Skipped:   count(choice.PassedOver, allocation.TrySkipped),
		Stale:     count(choice.PassedOver, allocation.TryStale),
		Attempts:  count(choice.PassedOver, allocation.TryLost),
		BindingID: string(r.BindingID), ServiceID: r.ServiceID,
		EndedAt: viewTime(r.EndedAt), EndedBy: viewActor(r.EndedBy), EndReason: r.EndReason, EndText: r.EndText,
	}
	if full(ctx) {
		view.Requirements, view.IdempotencyKey = r.Requirements, r.IdempotencyKey
	}
	return view, nil
}

// count tells how many better candidates ended so before the chosen one. The frozen reason has them all.
func count(walked []allocation.Walked, outcome allocation.TryOutcome) int {
	n := 0
	for _, w := range walked {
		if w.Outcome == outcome {
			n++
		}
	}
	return n
}

// reservationTag is the ETag of a reservation. The state is part of it, since a deadline changes the state by itself.
func reservationTag(r *reservation.Reservation) string {
	return fmt.Sprintf("\"%d-%s\"", r.Version, r.State)
}

func viewReservations(ctx context.Context, list []*reservation.Reservation) ([]wire.Reservation, error) {
	views := make([]wire.Reservation, len(list))
	for i, r := range list {
		view, err := viewReservation(ctx, r)
		if err != nil {
			return nil, err
		}
		views[i] = view
	}
	return views, nil
}
