package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"allocator/identity"
	"allocator/locking"
)

// demoHold is how long a reservation holds its server while the demo waits for one to expire.
const demoHold = 6 * time.Second

// stage is a service for one demo, with its own PostgreSQL in a directory of its own.
type stage struct {
	dir   string
	db    *database
	app   *app
	url   string
	key   string
	stop  context.CancelFunc
	ended chan error
}

// setStage makes everything that clear removes. What had been made is removed if something fails, an interrupt included.
func setStage(ctx context.Context, p *process, postgresBin string) (_ *stage, err error) {
	dir, err := os.MkdirTemp("", "allocator-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the demo: %w", err)
	}
	s := &stage{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.clear(ctx))
		}
	}()
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // run by root, PostgreSQL has another account, which must get in
		return nil, err
	}
	listener, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.notef("Preparing a service of the demo's own in %s, where no real server is sold …", dir)
	log := p.logger(slog.LevelError, "text")
	if s.db, err = openDatabase(ctx, p, databaseSettings{}, dataSettings{DataDir: dir, PostgresBin: postgresBin}, log); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	running, key, err := raise(ctx, p, s.db, listener, raiseOptions{
		dataDir: dir, minHold: time.Second,
		service: serviceOptions{locks: lockSettings{LockBackend: locking.BackendMemory, LockSingleNode: true}},
	}, log)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.app, s.url, s.key = running.app, running.address(), key
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // clear stops it, after the story's own clean-up
	s.stop, s.ended = stop, make(chan error, 1)
	go func() { s.ended <- running.run(serving, func() {}) }()
	return s, nil
}

// shortenHolds makes new reservations hold their servers for seconds. The service itself allows no less than a minute.
func (s *stage) shortenHolds(ctx context.Context) (time.Duration, error) {
	seconds := int(demoHold.Seconds())
	caller := identity.LocalCaller(demoOrganization, identity.Actor{Kind: identity.ActorSystem, ID: "demo"})
	_, err := s.app.organizations.Update(ctx, caller, demoOrganization, identity.OrganizationPatch{HoldSeconds: &seconds}, 0)
	return demoHold, err
}

// clear stops what runs and removes the directory, also after an interrupt.
func (s *stage) clear(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var failed []error
	if s.stop != nil {
		s.stop()
		failed = append(failed, <-s.ended, s.app.close(ctx))
	}
	if s.db != nil {
		failed = append(failed, s.db.close(ctx))
	}
	return errors.Join(append(failed, os.RemoveAll(s.dir))...)
}
