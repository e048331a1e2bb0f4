package locking

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// run runs the job once and records how that went.
func (s *Scheduler) run(ctx context.Context, j *scheduled) error {
	began := time.Now().UTC()
	j.update(func(s *Status) { s.Running, s.LastStart, s.Runs = true, began, s.Runs+1 })
	alarm := time.AfterFunc(j.ttl, func() { s.overrun(ctx, j) })
	err := s.callSafely(ctx, j)
	alarm.Stop()
	j.update(func(s *Status) {
		s.Running, s.LastEnd = false, time.Now().UTC()
		s.note(err)
	})
	if finding, found := errors.AsType[*FindingError](err); found {
		s.log.ErrorContext(ctx, "a job found what must not be", "job", j.ID, "finding", finding.Text)
	} else if err != nil {
		s.log.ErrorContext(ctx, "a job failed; it runs again at its next tick", "job", j.ID, "error", err)
	}
	return err
}

// note records what a run returned. A failed run has looked at nothing, so what was found before it stands.
func (s *Status) note(err error) {
	finding, found := errors.AsType[*FindingError](err)
	switch {
	case found:
		s.Findings++
		s.LastFinding, s.LastError = finding.Text, ""
	case err != nil:
		s.Errors++
		s.LastError = err.Error()
	default:
		s.LastFinding, s.LastError = "", ""
	}
}

// overrun reports a run that goes on for longer than was declared, while it does.
func (s *Scheduler) overrun(ctx context.Context, j *scheduled) {
	j.update(func(s *Status) { s.Overruns++ })
	s.log.ErrorContext(ctx, "a job runs for longer than its declaration says: correct its expected run time, or the job; its lock is renewed meanwhile",
		"job", j.ID, "expected", j.Expected, "lock_ttl", j.ttl)
}

// callSafely makes an error of a panic, so that one run cannot end all later ones.
func (s *Scheduler) callSafely(ctx context.Context, j *scheduled) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the job panicked: %v", reason)
			s.log.ErrorContext(ctx, "a job panicked", "job", j.ID, "reason", reason, "stack", string(debug.Stack()))
		}
	}()
	return j.Run(ctx)
}
