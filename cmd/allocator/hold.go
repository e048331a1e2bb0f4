package main

import (
	"context"

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
	Reason string `name:"reason" default:"customer_abandoned" enum:"customer_abandoned,payment_failed,fraud,staff,other" placeholder:"CODE" help:"customer_abandoned, payment_failed, fraud, staff or other."`
	Text   string `name:"text" placeholder:"TEXT" help:"More about it, for people who read it later."`
}

func (*cancelCmd) examples() string {
	return `
		allocator cancel res_0190a1b2c3d47e5f8091a2b3c4d5e6f7 --reason payment_failed
		allocator cancel res_0190a1b2c3d47e5f8091a2b3c4d5e6f7 --reason staff --text "asked by phone"`
}

// Run implements the command.
func (c *cancelCmd) Run(ctx context.Context, p *process) error {
	return c.onReservation(ctx, func(api *client.ClientWithResponses, id string) error {
		res, err := api.CancelReservationWithResponse(ctx, id, &client.CancelReservationParams{HoldToken: string(c.HoldToken)},
			client.CancelRequest{ReasonCode: client.CancelReason(c.Reason), Text: c.Text})
		if err != nil {
			return err
		}
		r, err := value(res.JSON200)
		return p.done(r, err, "The reservation is %s; %s is free for the next order.\n", r.State, serverName(r.Server))
	})
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
