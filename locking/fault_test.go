package locking

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// eventually returns when f is true, or fails the test.
func eventually(t *testing.T, f func() bool, what string) {
	t.Helper()
	require.Eventually(t, f, hang, patience/50, what)
}

// While the backend is stopped nobody knows who has the lock: asking is an error and never "somebody has it", and its
// holder is told to stop. After the restart the lock is free, and the old handle touches nothing.
//
// Requirements: L02, L04, L05, L08.
func TestBackendStopsWhileALockIsHeld(t *testing.T) {
	t.Parallel()
	onEverySite(t, func(t *testing.T, s site) {
		holder, other := s.node(t), s.node(t)
		h := take(t, holder, "key", long)
		s.stop(t)

		require.Equal(t, ErrNotOwner, holder.Renew(t.Context(), h))
		got, err := other.Try(t.Context(), "key", long)
		require.Nil(t, got)
		require.ErrorIs(t, err, ErrBackend)
		require.Equal(t, ErrNotOwner, holder.Release(t.Context(), h))

		s.start(t)
		fresh := take(t, other, "key", long)
		require.Equal(t, ErrNotOwner, holder.Renew(t.Context(), h))
		require.Equal(t, ErrNotOwner, holder.Release(t.Context(), h))
		requireTaken(t, holder, "key")
		require.NoError(t, other.Renew(t.Context(), fresh))
	})
}

// In a black hole nothing is refused and nothing answers. The holder is told to stop within the backend's time-outs, and
// until then nobody else has the lock; when its time is over, or its session noticed to be gone, somebody has.
//
// Requirements: L02, L05, L08.
func TestBackendIsBlackHoledWhileALockIsHeld(t *testing.T) {
	t.Parallel()
	onEverySite(t, func(t *testing.T, s site) {
		holder, near := s.node(t), s.near(t)
		h := take(t, holder, "key", long)
		s.proxy.hole()

		got, err := holder.Try(t.Context(), "other", long)
		require.Nil(t, got)
		require.ErrorIs(t, err, ErrBackend)
		requireTaken(t, near, "key")
		require.Equal(t, ErrNotOwner, holder.Renew(t.Context(), h))
		require.Equal(t, ErrNotOwner, holder.Release(t.Context(), h))

		s.lapse(t, "key")
		fresh := take(t, near, "key", long)
		s.proxy.heal() // what was sent into the hole arrives late
		eventually(t, func() bool {
			h, err := holder.Try(t.Context(), "third", long)
			return err == nil && h != nil
		}, "the holder works again")
		require.NoError(t, near.Renew(t.Context(), fresh), "late renewals and releases were not for this one")
		requireTaken(t, holder, "key")
	})
}

// A cut cable is noticed at once. What the connection was for is asked over a new one, or is lost.
//
// Requirements: L02, L05, L24.
func TestConnectionIsCutWhileALockIsHeld(t *testing.T) {
	t.Parallel()
	onEverySite(t, func(t *testing.T, s site) {
		holder, near := s.node(t), s.near(t)
		h := take(t, holder, "key", long)
		s.proxy.cut()
		kept := holder.Renew(t.Context(), h) == nil
		if holder.Name() == BackendPostgres {
			require.False(t, kept, "the lock hung on the connection")
			eventually(t, func() bool {
				fresh, err := near.Try(t.Context(), "key", long)
				return err == nil && fresh != nil
			}, "and went with it")
			return
		}
		require.True(t, kept)
		requireTaken(t, near, "key")
		require.NoError(t, holder.Release(t.Context(), h))
	})
}

// A job whose lock cannot be renewed is told by its context, whatever is the matter with the backend.
//
// Requirements: L05, L06.
func TestJobIsStoppedWhenItsBackendFails(t *testing.T) {
	t.Parallel()
	faults := map[string]func(t *testing.T, s site){
		"stopped":      func(t *testing.T, s site) { t.Helper(); s.stop(t) },
		"a black hole": func(t *testing.T, s site) { t.Helper(); s.proxy.hole() },
		"lapsed":       func(t *testing.T, s site) { t.Helper(); s.lapse(t, "key") },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEverySite(t, func(t *testing.T, s site) {
				ran, err := While(t.Context(), s.node(t), "key", patience, func(ctx context.Context) error {
					fault(t, s)
					ends(ctx)
					require.Error(t, ctx.Err(), "it was told")
					return context.Cause(ctx)
				})
				require.True(t, ran)
				require.ErrorIs(t, err, ErrNotOwner)
			})
		})
	}
}
