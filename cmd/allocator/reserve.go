package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"allocator/client"
)

// reserveCmd holds a server for an order line.
type reserveCmd struct {
	clientSettings
	requirementFlags
	Order    string        `name:"order" required:"true" placeholder:"ID" help:"The order, as the shop calls it."`
	Line     string        `name:"line" default:"1" placeholder:"LINE" help:"The line of the order."`
	Unit     int64         `name:"unit" default:"1" placeholder:"N" help:"Which server of that line, from 1."`
	Customer string        `name:"customer" placeholder:"REF" help:"The customer, as the shop calls it; open holds are limited by it."`
	Key      string        `name:"key" placeholder:"KEY" help:"Idempotency key; made and shown if left out. The same key again never makes a second reservation."`
	Wait     time.Duration `name:"wait" placeholder:"TIME" help:"How long to try again while others hold what fits, at most 5s."`
}

func (*reserveCmd) examples() string {
	return `
		allocator reserve --order A-1001 --memory-gib 64 --drive 2x960GB,ssd --price-max "80.00 EUR" --site FSN1
		allocator reserve --order A-1002 --requirements order.json --key a-1002-1 --wait 5s --json`
}

// Run implements the command.
func (c *reserveCmd) Run(ctx context.Context, p *process) error {
	wanted, err := c.requirements(p.stdin)
	if err != nil {
		return err
	}
	params := &client.CreateReservationParams{IdempotencyKey: c.Key}
	if c.Wait != 0 {
		seconds := int(c.Wait.Round(time.Second).Seconds())
		if seconds < 1 || seconds > 5 {
			return usagef("--wait is between 1s and 5s, not %s", c.Wait)
		}
		params.Prefer = "wait=" + strconv.Itoa(seconds)
	}
	if c.Key == "" {
		params.IdempotencyKey = uuid.Must(uuid.NewV7()).String()
		p.notef("key %s (give it as --key to repeat this request)", params.IdempotencyKey)
	}
	return c.call(func(api *client.ClientWithResponses) error {
		res, err := api.CreateReservationWithResponse(ctx, params, client.ReservationRequest{
			OrderID: c.Order, OrderLine: c.Line, Unit: c.Unit, CustomerRef: c.Customer, Requirements: wanted,
		})
		if err != nil {
			return err
		}
		reservation, err := value(res.JSON201, res.JSON200)
		switch {
		case err != nil:
			return err
		case p.json:
			return p.printJSON(reservation)
		}
		p.showReserved(reservation, res.JSON201 != nil)
		return nil
	})
}

// showReserved says what is held, why, and what can be done next.
func (p *process) showReserved(r client.Reservation, made bool) {
	if made {
		p.printf("Reserved %s for order %s, %s, until %s (%s).\n\n", serverName(r.Server), r.OrderID, lineWords(r.OrderLine, r.Unit),
			instant(r.ExpiresAt), span(r.ExpiresAt.Sub(r.CreatedAt)))
	} else {
		p.printf("The key or the order line already has this reservation: %s %s.\n\n", serverName(r.Server), presentWords(r))
	}
	p.printf("  reservation  %s\n  server       %s\n               %s\n", r.ID, r.Server.ID, hardware(r.Server))
	if r.HoldToken != nil {
		p.printf("  hold token   %s\n", *r.HoldToken)
	}
	p.printf("  why          %s\n", r.Reason.Text)
	if r.State == client.ReservationStateHeld {
		p.printf("%s", nextSteps(r))
	}
}

// nextSteps suggests what this key can do. The idempotency key is shown to staff alone, and they need no hold token;
// whoever else holds the server has to prove it, and selling is for another key.
func nextSteps(r client.Reservation) string {
	switch {
	case r.IdempotencyKey != "":
		return fmt.Sprintf("\nNext: allocator renew %[1]s before a payment step, then allocator convert %[1]s --service ID\n", r.ID)
	case r.HoldToken == nil:
		return "\nOnly the key that made it has its hold token.\n"
	}
	return fmt.Sprintf("\nNext, with this key:\n  allocator renew %[1]s --hold-token %[2]s\n  allocator cancel %[1]s --hold-token %[2]s\n"+
		"To sell it, with a key that has the scope orders:\n  allocator convert %[1]s --service ID\n", r.ID, *r.HoldToken)
}

// lineWords names a line of an order as shortly as it is told apart.
func lineWords(line string, unit int64) string {
	if unit > 1 {
		return fmt.Sprintf("line %s unit %d", line, unit)
	}
	return "line " + line
}
