package main

import (
	"context"
	"strconv"
	"strings"

	"allocator/client"
)

// evaluateCmd asks what would be chosen now. It writes nothing and holds nothing.
type evaluateCmd struct {
	clientSettings
	requirementFlags
	Key   string `name:"key" placeholder:"KEY" help:"Idempotency key of the reservation that is meant; it decides the order of equals."`
	Limit int    `name:"limit" default:"10" placeholder:"N" help:"How many of the servers that fit to show."`
}

func (*evaluateCmd) examples() string {
	return `
		allocator evaluate --memory-gib 128 --drive 2x960GB,nvme --price-max "80.00 EUR"
		allocator evaluate --requirements order.json --json`
}

// Run implements the command.
func (c *evaluateCmd) Run(ctx context.Context, p *process) error {
	wanted, err := c.requirements(p.stdin)
	if err != nil {
		return err
	}
	return c.call(func(api *client.ClientWithResponses) error {
		res, err := api.EvaluateWithResponse(ctx, client.EvaluationRequest{Key: c.Key, Requirements: wanted})
		if err != nil {
			return err
		}
		e, err := value(res.JSON200)
		switch {
		case err != nil:
			return err
		case p.json:
			return p.printJSON(e)
		}
		return p.showEvaluation(e, c.Limit)
	})
}

// noteCodes are the notes of a server in a table.
func noteCodes(notes client.Notes) string {
	return strings.Join(append([]string{""}, mapped(notes, func(n client.Note) string { return string(n.Code) })...), ", ")
}

func (p *process) showEvaluation(e client.Evaluation, limit int) error {
	p.printf("%s\n\n", e.Text)
	p.funnel("", e.Servers, e.Eligible, e.Counts)
	if e.Nearest.Text != "" && !strings.Contains(e.Text, e.Nearest.Text) {
		p.printf("\nNearest: %s\n", e.Nearest.Text)
	}
	if len(e.Ranked) == 0 {
		return nil
	}
	p.printf("\nIn the order in which they would be tried:\n")
	t := p.table("RANK", "ID", "NAME", "SITE", "HARDWARE")
	for _, r := range e.Ranked[:max(0, min(limit, len(e.Ranked)))] {
		t.row(strconv.Itoa(r.Rank), r.Server.ID, r.Server.Name, r.Server.Site, hardware(r.Server)+noteCodes(r.Notes))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if more := len(e.Ranked) - limit; more > 0 {
		p.printf("and %d more\n", more)
	}
	return nil
}
