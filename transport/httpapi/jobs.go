package httpapi

import (
	"context"
	"time"

	"allocator/identity"
	"allocator/locking"
	"allocator/transport/httpapi/wire"
)

// Jobs are the periodic jobs of this process.
type Jobs interface {
	// Jobs tells how each fares.
	Jobs() []locking.Status
	// RunJob runs one now and waits for it; false if it runs already, here or elsewhere. Errors: locking.ErrUnknownJob,
	// ErrBackend, or what the run returned.
	RunJob(ctx context.Context, id string) (ran bool, err error)
	// Backend is the lock backend's name, or none; and how tries of it ended that did not get the lock.
	Backend() (name string, contentions, failures int64)
}

// ListJobs implements wire.StrictServerInterface.
func (h *handlers) ListJobs(ctx context.Context, _ wire.ListJobsRequestObject) (wire.ListJobsResponseObject, error) {
	backend, contentions, failures := h.Jobs.Backend()
	return wire.ListJobs200JSONResponse{
		LockBackend: backend, Contentions: contentions, BackendFailures: failures,
		Items: each(h.Jobs.Jobs(), func(s locking.Status) wire.Job { return viewJob(ctx, s) }),
	}, nil
}

// RunJob implements wire.StrictServerInterface. That the run failed is no failure of the request.
func (h *handlers) RunJob(ctx context.Context, r wire.RunJobRequestObject) (wire.RunJobResponseObject, error) {
	ran, err := h.Jobs.RunJob(ctx, r.JobID)
	switch {
	case !ran && err != nil:
		return nil, err
	case !ran:
		return nil, newProblem("job_running").retryShortly()
	}
	for _, s := range h.Jobs.Jobs() {
		if s.ID == r.JobID {
			return wire.RunJob200JSONResponse(viewJob(ctx, s)), nil
		}
	}
	return nil, locking.ErrUnknownJob
}

// viewJob shows why a run failed to those alone who run the service: it may name anything inside of it.
func viewJob(ctx context.Context, s locking.Status) wire.Job {
	job := wire.Job{
		ID: s.ID, Hint: wire.JobHint(s.Hint), IntervalMs: s.Interval.Milliseconds(), JitterMs: s.Jitter.Milliseconds(),
		ExpectedMs: s.Expected.Milliseconds(), LockTTLMs: s.LockTTL.Milliseconds(), MissedPolicy: string(s.Missed),
		Running: s.Running, NextDueAt: s.NextTick, LastStartedAt: s.LastStart, LastEndedAt: s.LastEnd,
		LastFailed: s.LastError != "", LastFinding: s.LastFinding,
		Runs: s.Runs, Failures: s.Errors, Findings: s.Findings, Skips: s.Skips, Missed: s.MissedTicks,
		BackendErrors: s.BackendErrors, LocksLost: s.Lost, Overruns: s.Overruns,
	}
	if s.LastEnd.Before(s.LastStart) {
		job.LastEndedAt = time.Time{}
	}
	if callerOf(ctx).Scopes.Has(identity.ScopePlatform) {
		job.LastError = s.LastError
	}
	return job
}
