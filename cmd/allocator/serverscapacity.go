package main

import (
	"context"
	"strconv"

	"allocator/client"
)

// serversCapacityCmd counts servers by the rule by which they are reserved.
type serversCapacityCmd struct {
	clientSettings
	By string `name:"by" enum:"site,model,both" default:"both" help:"Tell groups apart by site, by model or by both."`
}

// Run implements the command.
func (c *serversCapacityCmd) Run(ctx context.Context, p *process) error {
	params := client.GetCapacityParams{GroupBy: client.CapacityGrouping(c.By)}
	if c.By == "both" {
		params.GroupBy = client.CapacityGroupingSiteModel
	}
	return c.call(func(api *client.ClientWithResponses) error {
		res, err := api.GetCapacityWithResponse(ctx, &params)
		if err != nil {
			return err
		}
		seen, err := value(res.JSON200)
		switch {
		case err != nil:
			return err
		case p.json:
			return p.printJSON(seen)
		}
		return p.showCapacity(seen)
	})
}

// showCapacity prints a line for each group and one for all. A key without the scope operator sees what is free alone.
func (p *process) showCapacity(seen client.Capacity) error {
	t := p.table("SITE", "MODEL", "FREE", "HELD", "BOUND", "OUT", "ALL")
	row := func(site, model string, c client.ServerCounts) {
		t.row(site, model, strconv.Itoa(c.Free), counted(c.Held), counted(c.Bound), counted(c.Out), counted(c.Servers))
	}
	for _, g := range seen.Items {
		row(pointed(g.Site), pointed(g.Model), g.Counts)
	}
	row("all", "", seen.Total)
	return t.flush()
}

func counted(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

func pointed(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
