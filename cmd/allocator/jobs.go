package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"allocator/featureflags"
	"allocator/locking"
	"allocator/store/postgres"
)

// jobs are the periodic jobs of this process beside the sweeper's. No sale depends on them. It implements httpapi.Jobs.
type jobs struct {
	*locking.Scheduler

	locker locking.Locker // nil: no backend is configured
	counts locking.Counts
}

// newJobs opens the lock backend and declares the jobs. It refuses a configuration under which a job could never run as
// its hint demands, while a backend that is away for the moment is a warning.
func newJobs(ctx context.Context, a *app, config locking.Config, log *slog.Logger) (*jobs, error) {
	j := &jobs{}
	locker, err := locking.Open(ctx, config, log)
	if err != nil {
		return nil, refusedLocks(err)
	}
	if locker != nil {
		j.locker = locking.Observed(locker, &j.counts)
	}
	j.Scheduler, err = locking.NewScheduler(locking.SchedulerOptions{
		Jobs: declaredJobs(a, log), Locker: j.locker, Config: config, Log: log,
	})
	if err != nil {
		return nil, errors.Join(refusedLocks(err), j.close(ctx))
	}
	return j, nil
}

func refusedLocks(err error) error {
	return usagef("the settings of locks and jobs (--lock-backend and the others that `allocator config` lists) cannot be used: %v", err)
}

// Backend implements httpapi.Jobs.
func (j *jobs) Backend() (name string, contentions, failures int64) {
	if j.locker == nil {
		return "none", 0, 0
	}
	return j.locker.Name(), j.counts.Contentions(), j.counts.BackendFailures()
}

// close lets go of the lock backend when no job runs any more.
func (j *jobs) close(ctx context.Context) error {
	if j.locker == nil {
		return nil
	}
	return j.locker.Cleanup(context.WithoutCancel(ctx))
}

// auditOversell is the job that looks for servers sold twice; its events bear the name.
const auditOversell = "audit_oversell"

// declaredJobs are all of them.
func declaredJobs(a *app, log *slog.Logger) []locking.Job {
	return []locking.Job{
		{ // a cache of each process; MissedRunOnce, or a slow reading would cost the next tick and the promise of 10 s
			ID: "refresh_flags", Interval: featureflags.RefreshEvery, Missed: locking.MissedRunOnce,
			Hint: locking.NodeLocal, Expected: featureflags.RefreshEvery, Run: a.refreshFlags,
		},
		{ // two at once would tell each finding twice
			ID: auditOversell, Interval: 5 * time.Minute, Jitter: 5 * time.Second, Missed: locking.MissedRunOnce,
			Hint: locking.RequireGlobal, Expected: time.Minute, Run: oversellAudit(postgres.NewOversell(a.pool), log),
		},
		{ // two at once would be a waste and no harm
			ID: "purge_dead", Interval: time.Hour, Jitter: time.Minute, Missed: locking.MissedRunOnce,
			Hint: locking.PreferGlobal, Expected: 5 * time.Minute, Run: purgeDead(a.purgers(), log),
		},
	}
}

func (a *app) refreshFlags(ctx context.Context) error {
	if err := a.flags.Refresh(ctx); err != nil {
		return fmt.Errorf("the release switch could not be read; the last known values hold, or off: %w", err)
	}
	return nil
}

// oversellFinder finds servers that are held and sold at once, and leaves their events.
type oversellFinder interface {
	Find(ctx context.Context, job string) ([]postgres.Oversold, error)
}

// oversellAudit makes the job. Each server is named in the log; the finding itself names nobody's.
func oversellAudit(finder oversellFinder, log *slog.Logger) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		found, err := finder.Find(ctx, auditOversell)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, one := range found {
			log.ErrorContext(ctx, "a server is held and sold at once: put it into maintenance, and look at who wrote to the database past its rules",
				"organization_id", one.Organization, "server_id", one.ServerID,
				"reservation_id", one.ReservationID, "binding_id", one.BindingID)
		}
		return &locking.FindingError{Text: "There are servers that are held and sold at once. The events server.oversold of their " +
			"organizations and the log name them; `allocator doctor` says what to do."}
	}
}

// purger deletes some of the rows that nobody needs any more, and says how many there were; none is the end.
type purger struct {
	what  string
	purge func(ctx context.Context) (int64, error)
}

// purgers are all of them.
func (a *app) purgers() []purger {
	return []purger{
		{"locks", postgres.NewLocks(a.pool).Purge},
		{"leases", postgres.NewLeases(a.pool).Purge},
	}
}

// purgeDead makes the job. One purger that fails does not keep the others from their work.
func purgeDead(purgers []purger, log *slog.Logger) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		var failed []error
		for _, p := range purgers {
			total, err := p.all(ctx)
			if total > 0 {
				log.InfoContext(ctx, "dead rows deleted", "of", p.what, "count", total)
			}
			failed = append(failed, err)
		}
		return errors.Join(failed...)
	}
}

func (p purger) all(ctx context.Context) (total int64, err error) {
	for {
		n, err := p.purge(ctx)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}
