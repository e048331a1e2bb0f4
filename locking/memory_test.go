package locking

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func memoryAt(c *clock) *Memory {
	m := NewMemory()
	m.now = c.Now
	return m
}

// Each process has its own: two of them both get the lock. That is why it is for one process only.
//
// Requirements: L11, L12.
func TestTwoMemoriesDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	one, two := NewMemory(), NewMemory()
	take(t, one, "key", long)
	take(t, two, "key", long)
	requireTaken(t, one, "key")
}

// Whoever opens it is warned at start-up.
//
// Requirements: L12.
func TestMemoryWarnsAtStartUp(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	l, err := Open(t.Context(), Config{Backend: BackendMemory}, slog.New(slog.NewTextHandler(&said, nil)))
	require.NoError(t, err)
	require.Equal(t, BackendMemory, l.Name())
	require.Contains(t, said.String(), "level=WARN")
	require.Contains(t, said.String(), "other processes do not see them")
}

// A lock ends at its deadline, which is no longer included, whether anybody wants it or not. A renewal counts from now.
//
// Requirements: L11, L13. Cases: LE-09.
func TestMemoryLockEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{time.Millisecond, time.Minute, 3 * time.Hour, 24 * time.Hour} {
		c := &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
		m := memoryAt(c)
		h := take(t, m, "key", ttl)
		c.advance(ttl - time.Nanosecond)
		requireTaken(t, m, "key")
		require.NoError(t, m.Renew(t.Context(), h))
		c.advance(ttl - time.Nanosecond)
		requireTaken(t, m, "key")
		c.advance(time.Nanosecond)
		take(t, m, "key", long)
		require.Equal(t, ErrNotOwner, m.Renew(t.Context(), h))
	}
}

// Any access sweeps what is over, so that a thousand dead locks neither jam a key nor stay in memory.
//
// Requirements: L11, L13.
func TestMemoryForgetsDeadLocks(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	m := memoryAt(c)
	for i := range 1000 {
		take(t, m, strings.Repeat("x", 1+i%200)+time.Duration(i).String(), time.Minute)
	}
	kept := take(t, m, "kept", long)
	c.advance(time.Minute)
	require.NoError(t, m.Renew(t.Context(), kept))
	require.Len(t, m.held, 1)
}
