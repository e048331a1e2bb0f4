package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
)

// upCmd runs everything that is needed for a first look, and keeps it for the next.
type upCmd struct {
	databaseSettings
	dataSettings
	serviceSettings
	lockSettings
	redisSettings
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
	RedisAddress string `json:"redis_address,omitempty"`
}

// Run implements the command. It ends with nil after an orderly stop.
func (c *upCmd) Run(ctx context.Context, p *process) error {
	if c.DataDir = defaultDataDir(p, c.DataDir); c.DataDir == "" {
		return errNoPlace
	}
	log := p.logger(c.LogLevel, "text")
	return p.untilStopped(ctx, c.Listen, func(listener net.Listener) error {
		db, err := openDatabase(ctx, p, c.databaseSettings, c.dataSettings, log)
		if err != nil {
			return err
		}
		return errors.Join(c.serve(ctx, p, db, listener, log), db.close(ctx))
	})
}

// serve furnishes the database and runs the service on it.
func (c *upCmd) serve(ctx context.Context, p *process, db *database, listener net.Listener, log *slog.Logger) error {
	known, err := keepsake(c.DataDir, apiKeyFile) // from an earlier start
	if err != nil {
		return err
	}
	s, key, err := raise(ctx, p, db, listener, raiseOptions{
		dataDir: c.DataDir, tokenKeys: c.HoldTokenKeys,
		service: serviceOptions{drainDelay: c.DrainDelay, leaseCeiling: c.LeaseCeiling, locks: c.lockSettings, redis: c.redisSettings},
	}, log)
	if err != nil {
		return err
	}
	err = s.run(ctx, func() {
		p.served = true
		answer := upAnswer{
			URL: s.address(), APIKey: key, Organization: string(demoOrganization), DatabaseURL: db.url, RedisAddress: s.redis.address(),
		}
		if p.json {
			_ = p.printJSONLine(answer) // nobody reads it any more: serving goes on
			return
		}
		p.printGuide(answer, c.place(), known == key)
	})
	return errors.Join(err, s.app.close(context.WithoutCancel(ctx)))
}

// place says where the data lives, and how to begin anew.
func (c *upCmd) place() string {
	if c.DatabaseURL != "" {
		return "the database that was given"
	}
	if dir, err := filepath.Abs(c.DataDir); err == nil {
		return dir + "; delete it to start over"
	}
	return c.DataDir
}
