package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"allocator/client"
)

// serversCmd reads the inventory and moves servers between states. It needs a key with the scope operator.
type serversCmd struct {
	List serversListCmd `cmd:"" help:"List servers in the order in which they were added."`
	Show serversShowCmd `cmd:"" help:"Show one server."`

	Capacity serversCapacityCmd `cmd:"" help:"Count the free, held, bound and out-of-order servers by site and model."`

	State serversStateCmd `cmd:"" help:"Move a server to another state, under an edit lease of the command's own."`
}

func (*serversCmd) examples() string {
	return `
		allocator servers list --site FSN1 --state ready --limit 20
		allocator servers show srv_0190a1b2c3d47e5f8091a2b3c4d5e6f7
		allocator servers capacity --by site
		allocator servers state srv_0190a1b2c3d47e5f8091a2b3c4d5e6f7 maintenance --reason "fan 2 is loud"`
}

type serversListCmd struct {
	clientSettings
	Sites   []string `name:"site" sep:"none" placeholder:"SITE" help:"At one of these sites, compared exactly as written; repeat it."`
	Racks   []string `name:"rack" sep:"none" placeholder:"RACK" help:"In one of these racks, compared exactly."`
	States  []string `name:"state" placeholder:"STATE" help:"In one of these states, such as ready."`
	Models  []string `name:"model" sep:"none" placeholder:"NAME" help:"Of one of these models, compared exactly; --q finds a part."`
	Serials []string `name:"serial" sep:"none" placeholder:"SERIAL" help:"With one of these serial numbers, whole but in any case."`
	Query   string   `name:"q" placeholder:"TEXT" help:"A part of the name, serial, model or external id."`
	Limit   int      `name:"limit" default:"50" placeholder:"N" help:"At most so many; 0 is all of them."`
}

// Run implements the command.
func (c *serversListCmd) Run(ctx context.Context, p *process) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	params := client.ListServersParams{
		Site: c.Sites, Rack: c.Racks, Model: c.Models, Serial: c.Serials, Q: c.Query, PageSize: listPage,
		State: mapped(c.States, func(s string) client.ServerState { return client.ServerState(s) }),
	}
	if c.Limit > 0 {
		params.PageSize = int64(min(c.Limit, listPage))
	}
	next, read := "", 0
	list, err := everyItem(c.Limit, func(token string) ([]client.Server, string, error) {
		params.PageToken = token
		res, err := api.ListServersWithResponse(ctx, &params)
		if err != nil {
			return nil, "", err
		}
		page, err := value(res.JSON200)
		next, read = page.NextPageToken, read+len(page.Items)
		return page.Items, next, err
	})
	if err != nil {
		return err
	}
	return p.showServers(list, next != "" || read > len(list))
}

// showServers prints a list, and beside it what the list alone does not say.
func (p *process) showServers(list []client.Server, more bool) error {
	switch {
	case len(list) == 0:
		p.notef("no server matches")
	case more:
		p.notef("%d shown, there are more: --limit N, 0 for all", len(list))
	}
	switch {
	case p.json:
		return p.printJSON(map[string]any{"items": list})
	case len(list) == 0:
		return nil
	}
	t := p.table("ID", "NAME", "SITE", "STATE", "HARDWARE")
	for _, s := range list {
		t.row(s.ID, s.Name, s.Site, string(s.State), hardware(reserved(s)))
	}
	return t.flush()
}

type serversShowCmd struct {
	clientSettings
	ID string `arg:"" help:"The server, srv_…"`
}

// Run implements the command.
func (c *serversShowCmd) Run(ctx context.Context, p *process) error {
	return c.call(func(api *client.ClientWithResponses) error {
		res, err := api.GetServerWithResponse(ctx, c.ID)
		if err != nil {
			return err
		}
		s, err := value(res.JSON200)
		switch {
		case err != nil:
			return err
		case p.json:
			return p.printJSON(s)
		}
		return p.showServer(s)
	})
}

func (p *process) showServer(s client.Server) error {
	t := p.table("server", s.ID)
	t.row("name", s.Name)
	t.row("site, rack, position", strings.Join([]string{s.Site, dash(s.Rack), dash(s.Position)}, ", "))
	t.row("state", strings.TrimSpace(string(s.State)+" "+s.StateReason))
	t.row("hardware", hardware(reserved(s)))
	t.row("serial", s.Serial)
	t.row("known to", s.Source+" as "+s.ExternalID)
	t.row("tags", strings.Join(s.Tags, ", "))
	for _, name := range slices.Sorted(maps.Keys(s.Attributes)) {
		t.row("attribute "+name, s.Attributes[name])
	}
	t.row("changed", instant(s.UpdatedAt))
	return t.flush()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// reserved is the part of a server's record that a reservation freezes: the two have the same fields.
func reserved(s client.Server) client.ReservedServer {
	return client.ReservedServer{
		ID: s.ID, Name: s.Name, Site: s.Site, Rack: s.Rack, Position: s.Position, Manufacturer: s.Manufacturer, Model: s.Model,
		CPU: s.CPU, Memory: s.Memory, Drives: s.Drives, Raid: s.Raid, Gpus: s.Gpus, UplinkMbps: s.UplinkMbps, Price: s.Price,
	}
}
