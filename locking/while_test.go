package locking

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// scripted is a Locker whose tries, renewals and releases end as a test says.
type scripted struct {
	Locker

	try     func(ctx context.Context, key string, ttl time.Duration) (*Handle, error)
	renew   func(ctx context.Context) error
	renewed atomic.Int32
}

func (l *scripted) Try(ctx context.Context, key string, ttl time.Duration) (*Handle, error) {
	if l.try != nil {
		return l.try(ctx, key, ttl)
	}
	return l.Locker.Try(ctx, key, ttl)
}

func (l *scripted) Renew(ctx context.Context, h *Handle) error {
	l.renewed.Add(1)
	if l.renew != nil {
		return l.renew(ctx)
	}
	return l.Locker.Renew(ctx, h)
}

// failing is the try of a broken backend.
func failing(context.Context, string, time.Duration) (*Handle, error) { return nil, ErrBackend }

// ends waits for a context that is expected to end.
func ends(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(hang):
	}
}

// after lets the time of the bubble pass.
func after(d time.Duration) { <-time.After(d) }

// Work that takes ten times as long as its lock keeps it by renewing, and gives it back.
//
// Requirements: L06, L13, L38.
func TestLongWorkKeepsItsLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		ran, err := While(t.Context(), m, "key", time.Second, func(ctx context.Context) error {
			after(10 * time.Second)
			h, err := m.Try(ctx, "key", long)
			require.NoError(t, err)
			require.Nil(t, h, "it is still ours")
			return ctx.Err()
		})
		require.True(t, ran)
		require.NoError(t, err)
		take(t, m, "key", long)
	})
}

// Without renewals the lock is lost during the same work: the test above would see it.
func TestControlWithoutRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		take(t, m, "key", time.Second)
		after(10 * time.Second)
		take(t, m, "key", long)
	})
}

// Contention and a broken backend both keep the work from being done, and are told apart.
//
// Requirements: L02, L03, L04.
func TestWorkIsNotDoneWithoutItsLock(t *testing.T) {
	t.Parallel()
	never := func(context.Context) error { t.Error("it ran"); return nil }
	m := NewMemory()
	take(t, m, "key", long)
	ran, err := While(t.Context(), m, "key", long, never)
	require.False(t, ran)
	require.NoError(t, err)

	broken := &scripted{Locker: m, try: failing}
	ran, err = While(t.Context(), broken, "key", long, never)
	require.False(t, ran)
	require.ErrorIs(t, err, ErrBackend)
}

// The context ends at the first renewal that fails, with ErrNotOwner as its cause, before the lock's time is over.
//
// Requirements: L05, L06.
func TestFailedRenewalEndsTheWork(t *testing.T) {
	t.Parallel()
	tests := map[string]func(ctx context.Context) error{
		"told at once": func(context.Context) error { return ErrNotOwner },
		"no answer":    func(ctx context.Context) error { <-ctx.Done(); return ErrNotOwner },
	}
	for name, renew := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, began := &scripted{Locker: NewMemory(), renew: renew}, time.Now()
				ran, err := While(t.Context(), l, "key", 3*time.Second, func(ctx context.Context) error {
					ends(ctx)
					require.ErrorIs(t, context.Cause(ctx), ErrNotOwner)
					require.Less(t, time.Since(began), 3*time.Second, "while the lock was still ours")
					return errors.New("half done")
				})
				require.True(t, ran)
				require.ErrorIs(t, err, ErrNotOwner)
				require.ErrorContains(t, err, "half done")
				require.EqualValues(t, 1, l.renewed.Load(), "it is not tried again")
			})
		})
	}
}

// A lock that was lost without a renewal in between is noticed when it is given back.
//
// Requirements: L05.
func TestLossIsNoticedAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		ran, err := While(t.Context(), m, "key", time.Hour, func(context.Context) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			clear(m.held)
			return nil
		})
		require.True(t, ran)
		require.ErrorIs(t, err, ErrNotOwner)
	})
}

// The lock is given back when the work panics, fails, or is told to end: somebody else goes on at once.
//
// Requirements: L08.
func TestLockIsGivenBackHoweverTheWorkEnds(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	require.PanicsWithValue(t, "oh", func() {
		_, _ = While(t.Context(), m, "key", long, func(context.Context) error { panic("oh") })
	})
	_, err := While(t.Context(), m, "key", long, func(context.Context) error { return errors.New("failed") })
	require.ErrorContains(t, err, "failed")

	ctx, cancel := context.WithCancel(t.Context())
	_, err = While(ctx, m, "key", long, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		require.Len(t, m.held, 1, "until it has returned")
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrNotOwner)
	take(t, m, "key", long)
}
