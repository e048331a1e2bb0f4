package main

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"allocator/reservation"
)

// serveCmd runs the service.
type serveCmd struct {
	databaseSettings
	dataSettings
	serviceSettings
	serveSettings
	lockSettings
	redisSettings
	logSettings
}

// serveAnswer is what `serve --json` prints once it serves.
type serveAnswer struct {
	URL          string `json:"url"`
	RedisAddress string `json:"redis_address,omitempty"`
}

func (*serveCmd) examples() string {
	return `
		ALLOCATOR_HOLD_TOKEN_KEYS="k1:$(openssl rand -hex 32)" allocator serve --migrate --database-url postgres://me:secret@db/allocator
		allocator serve --config /etc/allocator.conf --listen :8080 --drain-delay 10s`
}

// Run implements the command. It ends with nil after an orderly stop.
func (c *serveCmd) Run(ctx context.Context, p *process) (err error) {
	tokens, err := parseTokenKeys(c.HoldTokenKeys)
	if err != nil {
		return err
	}
	log := p.logger(c.LogLevel, c.LogFormat)
	return p.untilStopped(ctx, c.Listen, func(listener net.Listener) error {
		db, err := openDatabase(ctx, p, c.databaseSettings, c.dataSettings, log)
		if err != nil {
			return err
		}
		return errors.Join(c.serve(ctx, p, db, listener, tokens, log), db.close(ctx))
	})
}

// serve runs the service on an open database.
func (c *serveCmd) serve(
	ctx context.Context, p *process, db *database, listener net.Listener, tokens reservation.TokenKeys, log *slog.Logger,
) error {
	if err := prepareSchema(ctx, db, c.Migrate, log); err != nil {
		return err
	}
	a, err := newApp(ctx, db.pool, appOptions{tokens: tokens, ceiling: c.LeaseCeiling})
	if err != nil {
		return err
	}
	options := serviceOptions{drainDelay: c.DrainDelay, pollOnly: c.BehindPooler, locks: c.lockSettings, redis: c.redisSettings}
	s, err := newService(ctx, a, db, listener, options, log)
	if err != nil {
		return errors.Join(err, a.close(ctx))
	}
	err = s.run(ctx, func() {
		p.served = true
		log.InfoContext(ctx, "serving", "url", s.address(), "redis", s.redis.address(), "version", version)
		if p.json {
			_ = p.printJSONLine(serveAnswer{URL: s.address(), RedisAddress: s.redis.address()}) // nobody reads it any more: serving goes on
		}
	})
	return errors.Join(err, a.close(context.WithoutCancel(ctx)))
}

// untilStopped runs do with a listener of its own. To be stopped is an orderly end for it, also before there is anything
// to serve.
func (p *process) untilStopped(ctx context.Context, address string, do func(listener net.Listener) error) error {
	p.serves = true
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // closed already where it was served
	err = do(listener)
	if ctx.Err() != nil && !p.served {
		return nil
	}
	return err
}
