package locking

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One lock from start to end: taken, seen taken by others, kept, given back, free.
//
// Requirements: L01, L02, L03, L10, L38.
func TestLockIsTakenKeptAndGivenBack(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		mine, other := b.node(t), b.node(t)
		require.Contains(t, backends, mine.Name())

		h := take(t, mine, "machine:42:bmc", long)
		require.Equal(t, "machine:42:bmc", h.Key())
		requireTaken(t, other, "machine:42:bmc")
		requireTaken(t, mine, "machine:42:bmc") // not even its holder takes it twice

		require.NoError(t, mine.Renew(t.Context(), h))
		requireTaken(t, other, "machine:42:bmc")

		require.NoError(t, mine.Release(t.Context(), h))
		again := take(t, other, "machine:42:bmc", long)
		require.NoError(t, other.Release(t.Context(), again))
	})
}

// A lock is on any text: whoever wants one needs to ask nobody for a name.
//
// Requirements: L01, L38.
func TestKeysAreArbitraryAndApart(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		l := b.node(t)
		for _, key := range []string{
			"k", "K", "k ", " k", "billing-run", "order/7/capture", "rack A12 · Höhe 17", "100%", `a"b'c\d`, "*", "{x}", "$1",
			strings.Repeat("x", MaxKeyBytes), strings.Repeat("x", MaxKeyBytes-1),
		} {
			h := take(t, l, key, long)
			requireTaken(t, l, key)
			t.Cleanup(func() { _ = l.Release(context.WithoutCancel(t.Context()), h) })
		}
	})
}

// Nobody takes over a token, not even of an earlier lock on the same key.
//
// Requirements: L07.
func TestEveryAcquisitionHasATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		l, seen := b.node(t), map[string]bool{}
		for range 20 {
			h := take(t, l, "key", long)
			require.GreaterOrEqual(t, len(h.token), 32)
			require.False(t, seen[h.token])
			require.NotContains(t, h.String(), h.token, "a log line does not give it away")
			seen[h.token] = true
			require.NoError(t, l.Release(t.Context(), h))
		}
	})
}

// Whose time is over can neither renew nor free what somebody else has by now.
//
// Requirements: L05, L08, L13. Cases: LE-01.
func TestStaleHandleTouchesNothing(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		slow, quick := b.node(t), b.node(t)
		stale := take(t, slow, "key", time.Minute)
		b.lapse(t, "key")
		fresh := take(t, quick, "key", long)

		require.ErrorIs(t, slow.Renew(t.Context(), stale), ErrNotOwner)
		require.ErrorIs(t, slow.Release(t.Context(), stale), ErrNotOwner)
		requireTaken(t, slow, "key")
		require.NoError(t, quick.Renew(t.Context(), fresh))
		require.NoError(t, quick.Release(t.Context(), fresh))
	})
}

// A lock that ran out is lost, although nobody took it: it is not renewed, and asking for it anew gets another token.
//
// Requirements: L05. Cases: LE-01.
func TestLapsedLockIsNotRenewed(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		l := b.node(t)
		lapsed := take(t, l, "key", time.Minute)
		b.lapse(t, "key")
		require.ErrorIs(t, l.Renew(t.Context(), lapsed), ErrNotOwner)
		require.ErrorIs(t, l.Release(t.Context(), lapsed), ErrNotOwner, "it frees nothing, and says so")
		anew := take(t, l, "key", long)
		require.NotEqual(t, lapsed.token, anew.token)
		require.NoError(t, l.Release(t.Context(), anew))
	})
}

// A handle is passed back as it was received. Any other one fails and changes nothing.
//
// Requirements: L05, L09.
func TestChangedHandleChangesNothing(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		l := b.node(t)
		h := take(t, l, "key", long)
		released := take(t, l, "other", long)
		require.NoError(t, l.Release(t.Context(), released))
		for name, wrong := range map[string]*Handle{
			"another token": {key: h.key, token: strings.Repeat("0", 36), ttl: h.ttl},
			"no token":      {key: h.key, ttl: h.ttl},
			"a part of it":  {key: h.key, token: h.token[:35], ttl: h.ttl},
			"released":      released,
			"none":          nil,
			"empty":         {},
		} {
			require.Equal(t, ErrNotOwner, l.Renew(t.Context(), wrong), name)
			require.Equal(t, ErrNotOwner, l.Release(t.Context(), wrong), name)
		}
		requireTaken(t, l, "key")
		require.NoError(t, l.Renew(t.Context(), h))
		require.NoError(t, l.Release(t.Context(), h))
	})
}

// Of many who ask at once exactly one gets it; all others hear that somebody has it, which is no error.
//
// Requirements: L02, L03.
func TestOneOfManyGetsIt(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		const nodes = 12
		var got, failed atomic.Int32
		var all sync.WaitGroup
		start := make(chan struct{})
		for range nodes {
			l := b.node(t)
			all.Go(func() {
				<-start
				h, err := l.Try(t.Context(), "key", long)
				if h != nil {
					got.Add(1)
				}
				if err != nil {
					failed.Add(1)
				}
			})
		}
		close(start)
		all.Wait()
		require.EqualValues(t, 1, got.Load())
		require.Zero(t, failed.Load())
	})
}

// What is done under the lock is never done by two at once. Reading and writing apart would lose increments otherwise.
//
// Requirements: L02, L08.
func TestWorkUnderALockDoesNotOverlap(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		const nodes, each = 4, 10
		var counter, inside atomic.Int32
		var all sync.WaitGroup
		for range nodes {
			l := b.node(t)
			all.Go(func() {
				for done := 0; done < each; {
					h, err := l.Try(t.Context(), "counter", long)
					if err != nil {
						t.Error(err)
						return
					}
					if h == nil {
						continue
					}
					if inside.Add(1) != 1 {
						t.Error("two at once")
					}
					value := counter.Load()
					counter.Store(value + 1)
					inside.Add(-1)
					done++
					if err := l.Release(t.Context(), h); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		require.EqualValues(t, nodes*each, counter.Load())
	})
}

// What no backend could keep is refused by all of them in the same words, and nothing is locked.
//
// Requirements: L01.
func TestArgumentsOutOfBoundsAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key   string
		ttl   time.Duration
		field string
	}{
		"no key":                  {"", long, "key"},
		"a key too long":          {strings.Repeat("x", 256), long, "key"},
		"too long in bytes alone": {strings.Repeat("ö", 128), long, "key"},
		"a NUL":                   {"a\x00b", long, "key"},
		"a line break":            {"a\nb", long, "key"},
		"a delete":                {"a\x7f", long, "key"},
		"a line separator":        {"a\u2028b", long, "key"},
		"no UTF-8":                {"a\xff", long, "key"},
		"no time":                 {"key", 0, "ttl_ms"},
		"a negative time":         {"key", -time.Second, "ttl_ms"},
		"less than a millisecond": {"key", time.Microsecond, "ttl_ms"},
		"a fraction of one":       {"key", 1500 * time.Microsecond, "ttl_ms"},
		"more than a week":        {"key", MaxTTL + time.Millisecond, "ttl_ms"},
		"the longest":             {"key", 1<<63 - 1, "ttl_ms"},
	}
	onEveryBackend(t, func(t *testing.T, b bench) {
		l := b.node(t)
		for name, tt := range tests {
			h, err := l.Try(t.Context(), tt.key, tt.ttl)
			require.Nil(t, h, name)
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid, name)
			require.Equal(t, tt.field, invalid.Field, name)
			require.NotErrorIs(t, err, ErrBackend, name)
		}
		require.NoError(t, l.Release(t.Context(), take(t, l, "key", MaxTTL)))
	})
}

// Who goes away while asking has found nothing broken.
//
// Requirements: L02, L04.
func TestCancelledTryIsNoBackendError(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		l := b.node(t)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		h, err := l.Try(gone, "key", long)
		require.Nil(t, h)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, ErrBackend)
		require.NoError(t, l.Release(t.Context(), take(t, l, "key", long)))
	})
}

// Cleaning up is possible with every backend, and does nothing where nothing is kept open. Locks of others stay.
//
// Requirements: L01.
func TestCleanup(t *testing.T) {
	t.Parallel()
	onEveryBackend(t, func(t *testing.T, b bench) {
		other, l := b.node(t), b.node(t)
		kept := take(t, other, "kept", long)
		require.NoError(t, l.Cleanup(t.Context()))
		require.NoError(t, other.Renew(t.Context(), kept))
		if l.Name() == BackendMemory {
			require.NoError(t, l.Release(t.Context(), take(t, l, "key", long)))
			return
		}
		h, err := l.Try(t.Context(), "key", long)
		require.Nil(t, h)
		require.ErrorIs(t, err, ErrBackend)
	})
}
