package main

import (
	"context"
	"errors"

	"allocator/client"
)

// demoCmd plays a shop's day, with real requests and real answers.
type demoCmd struct {
	clientSettings
	PostgresBin string `name:"postgres-bin" placeholder:"DIR" setting:"POSTGRES_BIN" help:"Directory of the PostgreSQL programs to run; found by itself if left out."`
}

func (*demoCmd) examples() string {
	return `
		allocator demo
		ALLOCATOR_URL=http://127.0.0.1:8080 ALLOCATOR_API_KEY=alk_… allocator demo`
}

// Help implements kong.HelpProvider.
func (*demoCmd) Help() string {
	return "Without ALLOCATOR_URL and ALLOCATOR_API_KEY it plays on a service of its own, which is removed afterwards. With them it " +
		"reserves and sells real servers of that key's organization for a moment, and puts back what it sold; one stays held until its deadline."
}

// Run implements the command. Without an API key it plays on a service of its own, in a directory that is removed.
func (c *demoCmd) Run(ctx context.Context, p *process) (err error) {
	if c.APIKey != "" {
		api, err := c.client()
		if err != nil {
			return err
		}
		p.notef("Playing at %s, with real servers of this key's organization: they are reserved and sold for a moment, what was sold is put back, and one stays held until its deadline.", c.URL)
		return newTale(p, api).tell(ctx)
	}
	if p.sources.origin("url") != "default" {
		return usagef("a service is given and no key to call it with: set ALLOCATOR_API_KEY or --api-key")
	}
	stage, err := setStage(ctx, p, c.PostgresBin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.clear(ctx)) }()
	api, err := client.New(stage.url, stage.key)
	if err != nil {
		return err
	}
	t := newTale(p, api)
	t.shortenHolds = stage.shortenHolds
	return t.tell(ctx)
}
