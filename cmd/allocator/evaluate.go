package main

import (
	"cmp"
	"context"
	"iter"
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
	Full  bool   `name:"full" help:"Show every server, with every reason; as JSON, one object to a line."`
}

func (*evaluateCmd) examples() string {
	return `
		allocator evaluate --memory-gib 128 --drive 2x960GB,nvme --price-max "80.00 EUR"
		allocator evaluate --requirements order.json --json
		allocator evaluate --memory-gib 128 --full`
}

// Run implements the command.
func (c *evaluateCmd) Run(ctx context.Context, p *process) error {
	wanted, err := c.requirements(p.stdin)
	if err != nil {
		return err
	}
	if c.Full {
		return c.call(func(api *client.ClientWithResponses) error {
			return p.showLines(api.EvaluateInFull(ctx, client.EvaluationRequest{Key: c.Key, Requirements: wanted}))
		})
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

// showLines shows each server as it comes: there may be more of them than a table can be made of.
func (p *process) showLines(lines iter.Seq2[client.EvaluationLine, error]) error {
	for line, err := range lines {
		switch {
		case err != nil:
			return err
		case p.json:
			if err := p.printJSONLine(line); err != nil {
				return err
			}
		case line.Summary != nil:
			p.showSummary(*line.Summary)
			p.printf("\n")
		case line.Ranked != nil:
			s := line.Ranked.Server
			p.printf("%d  %s  %s  %s  %s\n", line.Ranked.Rank, s.ID, cmp.Or(s.Name, "-"), s.Site, hardware(s)+noteCodes(line.Ranked.Notes))
		case line.Rejected != nil:
			p.printf("-  %s  %s  %s  %s\n", line.Rejected.ServerID, cmp.Or(line.Rejected.Name, "-"), line.Rejected.Site, against(line.Rejected))
		}
	}
	return nil
}

// against says everything that speaks against a server.
func against(c *client.Candidate) string {
	said := mapped(c.Reasons, func(r client.Reason) string {
		return reasonName(client.ReasonCount{Code: r.Code, Requirement: r.Requirement}) + ": " + r.Text
	})
	return strings.Join(said, " ") + noteCodes(c.Notes)
}

func (p *process) showSummary(e client.Evaluation) {
	p.printf("%s\n\n", e.Text)
	p.funnel("", e.Servers, e.Eligible, e.Counts)
	if e.Nearest.Text != "" && !strings.Contains(e.Text, e.Nearest.Text) {
		p.printf("\nNearest: %s\n", e.Nearest.Text)
	}
}

func (p *process) showEvaluation(e client.Evaluation, limit int) error {
	p.showSummary(e)
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
	if more := e.Eligible - limit; more > 0 {
		p.printf("and %d more (--full shows every server)\n", more)
	}
	return nil
}
