package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"
)

// raiseOptions settle how a service for a first look is raised.
type raiseOptions struct {
	dataDir   string
	tokenKeys secret        // empty: those of the data directory
	minHold   time.Duration // 0: identity.MinHoldTime
	service   serviceOptions
}

// raise brings an open database to the point where a service can run on it: schema, keys of hold tokens, an organization
// with servers and an API key. The caller runs the service and closes its app.
func raise(
	ctx context.Context, p *process, db *database, listener net.Listener, o raiseOptions, log *slog.Logger,
) (s *service, key string, err error) {
	// 1. The schema.
	p.progressf("bringing the schema up to date …")
	if err := prepareSchema(ctx, db, true, log); err != nil {
		return nil, "", err
	}
	// 2. The keys of hold tokens, made once.
	if o.tokenKeys == "" {
		if o.tokenKeys, err = keptTokenKeys(o.dataDir); err != nil {
			return nil, "", err
		}
	}
	tokens, err := parseTokenKeys(o.tokenKeys)
	if err != nil {
		return nil, "", err
	}
	// 3. The services.
	a, err := newApp(ctx, db.pool, appOptions{tokens: tokens, minHold: o.minHold, ceiling: o.service.leaseCeiling})
	if err != nil {
		return nil, "", err
	}
	// 4. Something to try things with, and the door to it.
	p.progressf("adding the sample inventory …")
	key, err = furnish(ctx, a, o.dataDir)
	if err == nil {
		s, err = newService(ctx, a, db, listener, o.service, log)
	}
	if err != nil {
		return nil, "", errors.Join(err, a.close(ctx))
	}
	return s, key, nil
}
