package locking

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Outcomes is told how tries end that did not get the lock. The two are counted apart, because only one of them is worth
// waking somebody for. Its methods are called by several goroutines at once.
type Outcomes interface {
	// Contended is called when somebody else has the lock: trying again in a moment may get it.
	Contended(backend string)
	// BackendFailed is called when nobody can know who has the lock: somebody has to look.
	BackendFailed(backend string)
}

// Counts is an Outcomes that counts. Its zero value is ready.
type Counts struct {
	contended, failed atomic.Int64
}

// Contended implements Outcomes.
func (c *Counts) Contended(string) { c.contended.Add(1) }

// BackendFailed implements Outcomes.
func (c *Counts) BackendFailed(string) { c.failed.Add(1) }

// Contentions is how often somebody else had the lock.
func (c *Counts) Contentions() int64 { return c.contended.Load() }

// BackendFailures is how often the backend was broken.
func (c *Counts) BackendFailures() int64 { return c.failed.Load() }

// Observed is the Locker l whose outcomes are told to o as well.
func Observed(l Locker, o Outcomes) Locker { return &observed{Locker: l, outcomes: o} }

type observed struct {
	Locker

	outcomes Outcomes
}

// Try implements Locker.
func (l *observed) Try(ctx context.Context, key string, ttl time.Duration) (*Handle, error) {
	h, err := l.Locker.Try(ctx, key, ttl)
	switch {
	case errors.Is(err, ErrBackend):
		l.outcomes.BackendFailed(l.Name())
	case err == nil && h == nil:
		l.outcomes.Contended(l.Name())
	}
	return h, err
}
