package locking

import (
	"context"
	"errors"
	"time"
)

const (
	// renewals is how many renewals fall into the time of a lock: one may be late, and the job still ends before the lock.
	renewals = 3
	// releaseTimeout bounds giving the lock back when the caller is gone already.
	releaseTimeout = 5 * time.Second
)

// While runs fn if it gets the lock on the key, renews the lock until fn has returned, and releases it. It returns false
// and no error if somebody else has the lock, and false with Try's error if the backend is broken; then fn did not run.
//
// When a renewal fails, the context that fn received is cancelled with ErrNotOwner as its cause, at the latest when two
// thirds of ttl have passed since the last renewal that did not fail; the error then matches ErrNotOwner, beside fn's own.
// A process that was stopped or paused for longer is told when it wakes up, and whatever it did in the meantime was done
// without the lock: where that must not be, what is written has to carry a fence (see Grants).
func While(ctx context.Context, l Locker, key string, ttl time.Duration, fn func(ctx context.Context) error) (ran bool, err error) {
	h, err := l.Try(ctx, key, ttl)
	if h == nil {
		return false, err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	returned, kept := make(chan struct{}), make(chan bool, 1)
	go func() {
		ok := keepRenewing(ctx, l, h, returned)
		if !ok {
			cancel(ErrNotOwner)
		}
		kept <- ok
	}()
	defer func() { // also when fn panics
		close(returned)
		last := ErrNotOwner
		if <-kept {
			last = release(ctx, l, h)
		}
		err = errors.Join(last, err)
	}()
	return true, fn(inner)
}

// keepRenewing returns true when the work has returned, and false when the lock is lost. A renewal under way is not
// cut off by the end of the work, since that would look like a loss.
func keepRenewing(ctx context.Context, l Locker, h *Handle, returned <-chan struct{}) bool {
	every := max(h.ttl/renewals, time.Millisecond)
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-returned:
			return true
		case <-ticks.C:
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), every)
		err := l.Renew(bounded, h)
		cancel()
		if err != nil {
			return false
		}
	}
}

func release(ctx context.Context, l Locker, h *Handle) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	return l.Release(ctx, h)
}
