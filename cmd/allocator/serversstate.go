package main

import (
	"context"

	"allocator/client"
)

type serversStateCmd struct {
	clientSettings
	ID     string `arg:"" help:"The server, srv_…"`
	State  string `arg:"" help:"planned, staged, ready, cleaning, maintenance, failed or retired."`
	Reason string `name:"reason" required:"true" placeholder:"TEXT" help:"Why, for whoever reads it later."`
	Force  bool   `name:"force" help:"Cancel a reservation that holds the server; a sold one stays sold."`
}

// Run implements the command.
func (c *serversStateCmd) Run(ctx context.Context, p *process) error {
	return c.call(func(api *client.ClientWithResponses) error {
		s, err := setState(ctx, api, c.ID, client.ServerStateRequest{
			State: client.ServerState(c.State), Reason: c.Reason, Force: c.Force,
		})
		switch {
		case err != nil:
			return err
		case p.json:
			return p.printJSON(s)
		}
		return p.showServer(s)
	})
}

// setState moves a server to another state under a lease of its own.
func setState(
	ctx context.Context, api *client.ClientWithResponses, id string, wanted client.ServerStateRequest,
) (server client.Server, err error) {
	err = editing(ctx, api, id, func(holder string) error {
		res, err := api.SetServerStateWithResponse(ctx, id, &client.SetServerStateParams{LeaseHolder: holder}, wanted)
		if err == nil {
			server, err = value(res.JSON200)
		}
		return err
	})
	return server, err
}
