package main

import (
	"context"
	"fmt"

	"allocator/client"
)

// renewCmd moves a reservation's deadline.
type renewCmd struct{ heldReservation }

func (*renewCmd) examples() string {
	return `
		allocator renew res_0190a1b2c3d47e5f8091a2b3c4d5e6f7
		allocator renew res_0190a1b2c3d47e5f8091a2b3c4d5e6f7 --hold-token hold_k1_…`
}

// Run implements the command.
func (c *renewCmd) Run(ctx context.Context, p *process) error {
	return c.onReservation(ctx, func(api *client.ClientWithResponses, id string) error {
		res, err := api.RenewReservationWithResponse(ctx, id, &client.RenewReservationParams{HoldToken: string(c.HoldToken)})
		if err != nil {
			return err
		}
		r, err := value(res.JSON200)
		return p.done(r, err, "Held until %s; no renewal goes beyond %s.\n", instant(r.ExpiresAt), instant(r.MaxExpiresAt))
	})
}

// cancelCmd gives a reservation up.
type cancelCmd struct {
	heldReservation
	Reason string `name:"reason" default:"other" enum:"customer_abandoned,payment_failed,fraud,staff,other" placeholder:"CODE" help:"customer_abandoned, payment_failed, fraud, staff or other (other)."`
	Text   string `name:"text" placeholder:"TEXT" help:"More about it, for people who read it later; needed by a key that cannot check out."`
}

func (*cancelCmd) examples() string {
	return `
		allocator cancel res_0190a1b2c3d47e5f8091a2b3c4d5e6f7 --reason payment_failed
		allocator cancel res_0190a1b2c3d47e5f8091a2b3c4d5e6f7 --reason staff --text "asked by phone"`
}

// Run implements the command. Cancelling twice succeeds and changes nothing, so it looks first what there is to cancel.
func (c *cancelCmd) Run(ctx context.Context, p *process) error {
	return c.onReservation(ctx, func(api *client.ClientWithResponses, id string) error {
		seen, err := api.GetReservationWithResponse(ctx, id)
		if err != nil {
			return err
		}
		before, err := value(seen.JSON200)
		if err != nil {
			return err
		}
		res, err := api.CancelReservationWithResponse(ctx, id, &client.CancelReservationParams{HoldToken: string(c.HoldToken)},
			client.CancelRequest{ReasonCode: client.CancelReason(c.Reason), Text: c.Text})
		if err != nil {
			return err
		}
		r, err := value(res.JSON200)
		return p.done(r, err, "%s\n", c.outcome(before.State, r))
	})
}

// outcome says what this very call has done, if anything. Somebody else may have cancelled since the reservation was
// looked at: then the reason is theirs.
func (c *cancelCmd) outcome(before client.ReservationState, r client.Reservation) string {
	mine := before == client.ReservationStateHeld && r.EndReason == c.Reason && r.EndText == c.Text
	switch {
	case r.State == client.ReservationStateCancelled && mine:
		return fmt.Sprintf("The reservation is cancelled (%s); %s is free for the next order.", r.EndReason, serverName(r.Server))
	case r.State == client.ReservationStateCancelled:
		return fmt.Sprintf("The reservation was cancelled already (%s, at %s): nothing to cancel.", r.EndReason, instant(r.EndedAt))
	case r.State == client.ReservationStateExpired:
		return fmt.Sprintf("The reservation had expired at %s: nothing to cancel.", instant(r.ExpiresAt))
	default:
		return fmt.Sprintf("The reservation is %s.", r.State)
	}
}

// convertCmd sells a held server.
type convertCmd struct {
	heldReservation
	Service string `name:"service" required:"true" placeholder:"ID" help:"The service that gets the server, as the provider calls it."`
}

func (*convertCmd) examples() string {
	return `allocator convert res_0190a1b2c3d47e5f8091a2b3c4d5e6f7 --service svc-1001`
}

// Run implements the command.
func (c *convertCmd) Run(ctx context.Context, p *process) error {
	return c.onReservation(ctx, func(api *client.ClientWithResponses, id string) error {
		res, err := api.ConvertReservationWithResponse(ctx, id, &client.ConvertReservationParams{HoldToken: string(c.HoldToken)},
			client.ConvertRequest{ServiceID: c.Service})
		if err != nil {
			return err
		}
		b, err := value(res.JSON201, res.JSON200)
		return p.done(b, err, "%s is bound to service %s since %s (binding %s).\n", serverName(b.Server), b.ServiceID, instant(b.Since), b.ID)
	})
}
