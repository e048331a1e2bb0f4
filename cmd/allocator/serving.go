package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"allocator/lease"
	"allocator/locking"
	"allocator/migrations"
	"allocator/store/postgres"
	"allocator/sweeper"
	"allocator/transport/httpapi"
)

// service is a running Allocator: its doors, and what works beside them. It serves until it is told to stop.
type service struct {
	app      *app
	db       *database
	listener net.Listener
	door     *httpapi.Server
	sweeper  *sweeper.Sweeper
	jobs     *jobs
	editors  *lease.Hub
	ahead    *warming
	pollOnly bool
	redis    *redisDoor // nil: it is not wanted
	log      *slog.Logger
}

// serviceOptions settle what differs between processes.
type serviceOptions struct {
	drainDelay time.Duration
	pollOnly   bool // behind a pooler in transaction mode
	locks      lockSettings
	redis      redisSettings

	leaseCeiling time.Duration // of a service that makes its own app
}

// newService prepares the door, the sweeper and the other jobs over the services.
func newService(
	ctx context.Context, a *app, db *database, listener net.Listener, o serviceOptions, log *slog.Logger,
) (_ *service, err error) {
	config, err := o.locks.config(db.url, o.pollOnly)
	if err != nil {
		return nil, err
	}
	periodic, err := newJobs(ctx, a, config, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, periodic.close(ctx))
		}
	}()
	editors := lease.NewHub(a.leaseStore, log)
	ahead := newWarming(a)
	door, err := httpapi.New(httpapi.Deps{ //nolint:contextcheck // requests bring their own
		Authenticator: a.keys, Attempts: a.audit, Ready: ahead,
		Reserver: a.allocator, Evaluator: a.allocator, Capacity: a.allocator, Decisions: a.allocator,
		Reservations: a.reservations, ReservationChanges: a.reservations, Bindings: a.reservations, ServerStates: a.reservations,
		Servers: a.servers, Events: postgres.NewEvents(a.pool),
		Locks: locking.NewGrants(postgres.NewLocks(a.pool)), Jobs: periodic,
		Leases: a.leases, LeaseWatch: editors,
		Organizations: a.organizations, Keys: a.keys, Flags: a.flags, Audit: a.audit,
		Log: log, Version: version, DrainDelay: o.drainDelay,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the HTTP door: %w", err)
	}
	sweeps, err := sweeper.New(a.pool, sweeper.Options{
		Reservations: a.reservations, Partitions: postgres.NewPartitions(a.pool), Trail: a.audit, Log: log, PollOnly: o.pollOnly,
	})
	if err != nil {
		return nil, err
	}
	redis, err := newRedisDoor(ctx, a, o.redis, log)
	if err != nil {
		return nil, err
	}
	return &service{
		app: a, db: db, listener: listener, door: door, sweeper: sweeps, jobs: periodic, redis: redis, editors: editors, ahead: ahead,
		pollOnly: o.pollOnly, log: log,
	}, nil
}

// run serves until ctx ends or something that it cannot do without has failed; ready is called once it serves. Then
// /readyz says no, requests under way are finished, the sweeper stops softly, and what was gathered is written.
func (s *service) run(ctx context.Context, ready func()) error {
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var working sync.WaitGroup
	working.Go(func() { s.jobs.Run(background) })
	working.Go(func() { s.ahead.Run(background, s.log) })
	working.Go(func() { s.editors.Run(background) })
	working.Go(func() { postgres.ListenLeases(background, s.app.pool, s.editors, s.pollOnly, s.log) })
	working.Go(func() { s.app.audit.Run(background, s.log) })
	working.Go(func() { s.app.keys.Run(background, s.log) })
	working.Go(func() {
		if err := s.sweeper.Run(background); err != nil {
			s.log.ErrorContext(ctx, "the sweeper ended", "error", err)
			end(err)
		}
	})
	working.Go(func() {
		if err := s.redis.serve(serving); err != nil {
			s.log.ErrorContext(ctx, "the door for clients of Redis ended", "error", err)
			end(err)
		}
	})
	working.Go(func() {
		select {
		case <-s.db.died():
			end(s.db.own.Err())
		case <-background.Done():
		}
	})

	ready()
	err := s.door.Serve(serving, s.listener)
	s.log.InfoContext(ctx, "no new requests are taken; the rest of the service stops")
	stop()
	working.Wait()
	err = errors.Join(err, s.jobs.close(ctx))
	if ctx.Err() == nil {
		err = errors.Join(err, context.Cause(serving))
	}
	return err
}

// address is where the service is reached from this machine.
func (s *service) address() string {
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return "http://" + net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + s.listener.Addr().String()
}

// listen takes the address before anything slow begins.
func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another program listens on %s: choose another address with --listen (127.0.0.1:0 takes any free port)", address)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --listen", address, err)
	}
	return listener, nil
}

// prepareSchema refuses a database on which the promises cannot be kept, and brings an older schema up to date if that
// is wanted.
func prepareSchema(ctx context.Context, db *database, migrate bool, log *slog.Logger) error {
	err := postgres.CheckServer(ctx, db.pool)
	if migrate && errors.Is(err, postgres.ErrSchemaBehind) {
		if err := migrations.Up(ctx, db.pool, log); err != nil {
			return err
		}
		err = postgres.CheckServer(ctx, db.pool)
	}
	if err != nil {
		return err
	}
	// A database that stood still for months has no partition for the present one. The daily job would make it a moment too
	// late: the first request's rows would lie in the default partition and keep the month from being made ever after.
	if _, err := postgres.NewPartitions(db.pool).MakeMonths(ctx, sweeper.PartitionMonths); err != nil {
		log.WarnContext(ctx, "the months ahead have no partitions; allocator doctor says what to do", "error", err)
	}
	loss, err := postgres.LossOnTakeOver(ctx, db.pool)
	if loss != "" {
		log.WarnContext(ctx, "what was acknowledged may be lost", "why", loss)
	}
	return err
}
