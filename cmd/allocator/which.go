package main

import (
	"context"
	"fmt"
	"strings"

	"allocator/client"
	"allocator/reservation"
)

// heldReservation names a reservation and proves who holds it.
type heldReservation struct {
	clientSettings
	Which     string `arg:"" name:"reservation" help:"The reservation, res_…, or the order that has it."`
	HoldToken secret `name:"hold-token" placeholder:"TOKEN" setting:"HOLD_TOKEN" secret:"" help:"Proof of being the holder; needed by a key that can only check out."`
}

// find gives the id of the reservation. An order stands for the one that it holds, or for its newest if it holds none.
func (c *heldReservation) find(ctx context.Context, api *client.ClientWithResponses) (string, error) {
	if strings.HasPrefix(c.Which, "res_") {
		return c.Which, nil
	}
	res, err := api.ListReservationsWithResponse(ctx, &client.ListReservationsParams{OrderID: []string{c.Which}, PageSize: listPage})
	if err != nil {
		return "", err
	}
	list, err := value(res.JSON200)
	if err != nil {
		return "", err
	}
	var held []string
	for _, r := range list.Items {
		if r.State == client.ReservationStateHeld {
			held = append(held, r.ID)
		}
	}
	switch {
	case len(held) > 1:
		return "", usagef("the order %s holds several servers, name one of the reservations: %s", c.Which, strings.Join(held, ", "))
	case len(held) == 1:
		return held[0], nil
	case len(list.Items) > 0:
		return list.Items[0].ID, nil
	default:
		return "", fmt.Errorf("the order %s has no reservation in your organization: %w", c.Which, reservation.ErrNotFound)
	}
}

// onReservation makes the caller, finds the reservation and runs do.
func (c *heldReservation) onReservation(ctx context.Context, do func(api *client.ClientWithResponses, id string) error) error {
	return c.call(func(api *client.ClientWithResponses) error {
		id, err := c.find(ctx, api)
		if err != nil {
			return err
		}
		return do(api, id)
	})
}
