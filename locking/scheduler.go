package locking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// The ways in which a scheduler refuses.
var (
	ErrNoGlobalBackend = errors.New("no lock backend that all processes share is configured: set backend to redis or pg, or to memory with single_node if there is one process only")
	ErrUnknownJob      = errors.New("there is no job of this id")
)

// SchedulerOptions settle a Scheduler.
type SchedulerOptions struct {
	Jobs   []Job
	Locker Locker // as Open returned it for Config; nil if no backend is configured
	Config Config
	Log    *slog.Logger
}

// Scheduler runs the declared jobs of one process. Any number of processes may run one; the lock, where a job's hint
// asks for it, makes each tick run on one of them.
type Scheduler struct {
	jobs   []*scheduled
	log    *slog.Logger
	jitter func(most time.Duration) time.Duration
}

// scheduled is a job with what the scheduler knows of it.
type scheduled struct {
	Job
	ledger

	ttl    time.Duration // of its lock
	locker Locker        // nil for a job that never touches one
	claim  *Handle       // the claim of the last tick that was run here; used by the job's own loop alone
}

// NewScheduler checks the declarations and the configuration. It refuses what could not work: among others a job with
// the hint require_global where no backend is shared by all processes (ErrNoGlobalBackend).
func NewScheduler(o SchedulerOptions) (*Scheduler, error) {
	s := &Scheduler{log: o.Log, jitter: upTo}
	errs := []error{o.Config.Validate()}
	known := map[string]bool{}
	for _, job := range o.Jobs {
		if known[job.ID] {
			errs = append(errs, fmt.Errorf("job %q is declared twice", job.ID))
		}
		known[job.ID] = true
		j, err := settle(job, o.Locker, o.Config)
		s.jobs, errs = append(s.jobs, j), append(errs, err)
	}
	for _, id := range slices.Sorted(maps.Keys(o.Config.Jobs)) {
		if !known[id] {
			errs = append(errs, fmt.Errorf("jobs.%s: %w", id, ErrUnknownJob))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// settle applies the configuration to a declaration.
func settle(job Job, locker Locker, c Config) (*scheduled, error) {
	// 1. What the operator says goes before what the job says.
	own := c.Jobs[job.ID]
	job.Hint = cmp.Or(own.Hint, job.Hint)
	job.Expected = cmp.Or(own.Expected, job.Expected)
	job.Jitter = cmp.Or(own.Jitter, job.Jitter)
	job.Missed = cmp.Or(job.Missed, MissedSkip)
	if err := job.check(); err != nil {
		return nil, err
	}
	// 2. The lock outlives the longest run that is expected. Processes begin up to Jitter apart.
	j := &scheduled{Job: job, ttl: (job.Expected + job.Jitter + cmp.Or(c.Margin, DefaultMargin)).Round(time.Millisecond)}
	if err := checkTTL(j.ttl); err != nil {
		return nil, fmt.Errorf("job %q: expected run time, jitter and margin together: %w", job.ID, err)
	}
	j.status = Status{
		ID: job.ID, Interval: job.Interval, Jitter: job.Jitter, Missed: job.Missed, Hint: job.Hint,
		Expected: job.Expected, LockTTL: j.ttl,
	}
	// 3. A lock, if it wants one; and one that every process sees, if it cannot do without.
	shared := locker != nil && (locker.Name() != BackendMemory || c.SingleNode)
	switch {
	case job.Hint == RequireGlobal && !shared:
		return nil, fmt.Errorf("job %q is %s, and %w", job.ID, RequireGlobal, ErrNoGlobalBackend)
	case job.Hint == PreferGlobal && locker == nil:
		j.locker = NewMemory()
	case job.Hint != NodeLocal:
		j.locker = locker
	}
	return j, nil
}

// upTo is a random time of at most that length.
func upTo(most time.Duration) time.Duration {
	return rand.N(most + 1) //nolint:gosec // it only spreads load
}

// Run runs the jobs until ctx ends and those under way, whose contexts end with it, have returned.
func (s *Scheduler) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, j := range s.jobs {
		all.Go(func() { s.loop(ctx, j) })
	}
	all.Wait()
}

// Jobs tells how each job fares in this process, in the order of their declaration.
func (s *Scheduler) Jobs() []Status {
	list := make([]Status, len(s.jobs))
	for i, j := range s.jobs {
		list[i] = j.read()
	}
	return list
}

// RunJob runs a job now and waits for it, under the same lock as its ticks but in the place of none of them. It returns
// false and no error if the job runs already, here or on another process. The error is ErrUnknownJob, one that matches
// ErrBackend when the job did not run, or what the run returned, which may be a *FindingError.
func (s *Scheduler) RunJob(ctx context.Context, id string) (ran bool, err error) {
	for _, j := range s.jobs {
		if j.ID == id {
			return s.runNow(ctx, j)
		}
	}
	return false, ErrUnknownJob
}

func (s *Scheduler) runNow(ctx context.Context, j *scheduled) (ran bool, err error) {
	if !j.occupy() {
		return false, nil
	}
	defer j.vacate()
	if j.locker == nil {
		return true, s.run(ctx, j)
	}
	var failed error
	ran, err = While(ctx, j.locker, j.lockKey(), j.ttl, func(ctx context.Context) error {
		failed = s.run(ctx, j)
		return nil
	})
	if err != nil {
		s.record(ctx, j, ran, err)
	}
	return ran, errors.Join(err, failed)
}

// lockKey is held while the job runs; claimKey from the beginning of a tick's run until shortly before the next tick.
func (j *scheduled) lockKey() string            { return "job:" + j.ID }
func (j *scheduled) claimKey(tick int64) string { return fmt.Sprintf("job:%s@%d", j.ID, tick) }
