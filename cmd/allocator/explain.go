package main

import (
	"context"
	"fmt"
	"strings"

	"allocator/client"
)

// explainCmd tells the story of an order: why each try got what it got, and what happened then. It needs a key with the
// scope support.
type explainCmd struct {
	clientSettings
	Order string `arg:"" help:"The order, as the shop calls it."`
}

func (*explainCmd) examples() string {
	return `
		allocator explain A-1001
		allocator explain A-1001 --json`
}

// Run implements the command.
func (c *explainCmd) Run(ctx context.Context, p *process) error {
	return c.call(func(api *client.ClientWithResponses) error {
		res, err := api.GetOrderWithResponse(ctx, c.Order)
		if err != nil {
			return err
		}
		order, err := value(res.JSON200)
		switch {
		case err != nil:
			return err
		case p.json:
			return p.printJSON(order)
		}
		p.tellOrder(order)
		return nil
	})
}

// tellOrder writes the whole story, oldest first.
func (p *process) tellOrder(order client.Order) {
	p.printf("Order %s: %s, %s, %s\n", order.OrderID, plural(len(order.Decisions), "decision"),
		plural(len(order.Reservations), "reservation"), plural(len(order.Bindings), "binding"))
	for i, decision := range order.Decisions {
		p.printf("\n")
		p.tellDecision(i+1, decision)
	}
	p.tellEvents(order)
	p.tellPresent(order)
	if order.Truncated {
		p.printf("\nThe order has more than one answer holds; the lists of the API have all of it.\n")
	}
}

// tellDecision writes one frozen decision: what came out and why, what was asked, what was seen, what was tried.
func (p *process) tellDecision(number int, d client.Decision) {
	outcome := string(d.Outcome)
	if d.Cause != "" {
		outcome += " (" + string(d.Cause) + ")"
	}
	p.printf("%d. %s  %s: %s\n", number, instant(d.CreatedAt), lineWords(d.OrderLine, d.Unit), outcome)
	p.printf("   %s\n", d.Text)
	p.printf("   asked for: %s\n", requirementWords(d.Requirements))
	if !d.SeenAt.IsZero() {
		p.funnel("   ", d.Servers, d.Eligible, d.Counts)
	}
	for _, w := range d.Walked {
		p.printf("   tried rank %d: %s %s%s\n", w.Rank, serverWords(w.Name, w.ServerID), walkWords(w.Outcome), noteWords(w.Notes))
	}
	if d.Choice.Rank > 0 {
		p.printf("   chosen: rank %d of %d\n", d.Choice.Rank, d.Choice.Eligible)
	}
	p.printf("   by %s, decision %s\n", actor(d.By), d.ID)
}

// walkWords says what became of a candidate that was tried.
func walkWords(outcome client.ReasonCode) string {
	words := map[client.ReasonCode]string{
		"chosen":    "was chosen",
		"skipped":   "was passed over: another order had it at that moment",
		"stale":     "was passed over: it no longer fitted when it was locked",
		"lost_race": "was lost to another order a moment earlier",
	}
	if text := words[outcome]; text != "" {
		return text
	}
	return string(outcome)
}

// noteWords says what stands beside the reasons of a server.
func noteWords(notes client.Notes) string {
	return strings.Join(mapped(notes, func(n client.Note) string {
		return fmt.Sprintf("\n      note: %s (%s)", n.Text, n.Code)
	}), "")
}

func serverWords(name, id string) string {
	if name == "" {
		return id
	}
	return name + " (" + id + ")"
}
