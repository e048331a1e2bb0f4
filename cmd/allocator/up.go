package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
)

// upCmd runs everything that is needed for a first look, and keeps it for the next.
type upCmd struct {
	databaseSettings
	dataSettings
	serviceSettings
	LogLevel slog.Level `name:"log-level" default:"warn" placeholder:"LEVEL" setting:"LOG_LEVEL" help:"debug, info, warn or error."`
}

func (*upCmd) examples() string {
	return `
		allocator up
		allocator up --listen 127.0.0.1:0 --data-dir ./data --json`
}

// upAnswer is what `up --json` prints once it serves.
type upAnswer struct {
	URL          string `json:"url"`
	APIKey       string `json:"api_key"`
	Organization string `json:"organization"`
	DatabaseURL  string `json:"database_url"`
}

// Run implements the command. It ends with nil after an orderly stop.
func (c *upCmd) Run(ctx context.Context, p *process) error {
	c.DataDir = defaultDataDir(p, c.DataDir)
	log := p.logger(c.LogLevel, "text")
	return p.untilStopped(ctx, c.Listen, func(listener net.Listener) error {
		db, err := openDatabase(ctx, p, c.databaseSettings, c.DataDir, log)
		if err != nil {
			return err
		}
		return errors.Join(c.serve(ctx, p, db, listener, log), db.close(ctx))
	})
}

// serve furnishes the database and runs the service on it.
func (c *upCmd) serve(ctx context.Context, p *process, db *database, listener net.Listener, log *slog.Logger) error {
	// 1. The schema.
	p.progressf("bringing the schema up to date …")
	if err := prepareSchema(ctx, db, true, log); err != nil {
		return err
	}
	// 2. The keys of hold tokens, made once.
	a, err := c.wire(ctx, db)
	if err != nil {
		return err
	}
	// 3. Something to try things with.
	p.progressf("adding the sample inventory …")
	key, err := furnish(ctx, a, c.DataDir)
	if err != nil {
		return errors.Join(err, a.close(ctx))
	}
	// 4. The service.
	s, err := newService(a, db, listener, serviceOptions{drainDelay: c.DrainDelay}, log) //nolint:contextcheck // requests bring their own
	if err != nil {
		return errors.Join(err, a.close(ctx))
	}
	err = s.run(ctx, func() {
		answer := upAnswer{URL: s.address(), APIKey: key, Organization: string(demoOrganization), DatabaseURL: db.url}
		if p.json {
			_ = p.printJSONLine(answer) // nobody reads it any more: serving goes on
			return
		}
		p.printGuide(answer)
	})
	return errors.Join(err, a.close(context.WithoutCancel(ctx)))
}

func (c *upCmd) wire(ctx context.Context, db *database) (*app, error) {
	text := c.HoldTokenKeys
	if text == "" {
		var err error
		if text, err = keptTokenKeys(c.DataDir); err != nil {
			return nil, err
		}
	}
	tokens, err := parseTokenKeys(text)
	if err != nil {
		return nil, err
	}
	return newApp(ctx, db.pool, appOptions{tokens: tokens})
}
