package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 20 * time.Second

// board is a reader whose leases the test sets.
type board struct {
	mu     sync.Mutex
	leases []Lease
	fails  bool
	reads  int
}

func (b *board) Standing(context.Context, string, string) (Standing, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	if b.fails {
		return Standing{}, errors.New("away")
	}
	return Standing{Now: time.Now(), Leases: b.leases}, nil
}

func (b *board) set(fails bool, leases ...Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails, b.leases = fails, leases
}

func runHub(t *testing.T) (*Hub, *board) {
	t.Helper()
	b := &board{}
	h := NewHub(b, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { h.Run(ctx) })
	t.Cleanup(func() { stop(); done.Wait() })
	return h, b
}

// next is the next presence of a watch.
func next(t *testing.T, w *Watch) Presence {
	t.Helper()
	select {
	case p, open := <-w.C:
		require.True(t, open, "it was cut")
		return p
	case <-time.After(patience):
		require.Fail(t, "nothing came")
		return Presence{}
	}
}

// wait waits for a presence of so many leases.
func wait(t *testing.T, w *Watch, leases int) {
	t.Helper()
	for len(next(t, w).Leases) != leases { //nolint:revive // it is the wait
	}
}

// Everybody who watches a resource is told of a change, and nobody else; when a lease runs out that nobody renews they are
// told too, without anybody doing anything.
//
// Requirements: E14, E17. Cases: LE-07.
func TestHubTellsOfChangesAndOfEnds(t *testing.T) {
	t.Parallel()
	h, b := runHub(t)
	one, err := h.Watch("acme", "rack:1")
	require.NoError(t, err)
	two, err := h.Watch("acme", "rack:1")
	require.NoError(t, err)
	elsewhere, err := h.Watch("globex", "rack:1")
	require.NoError(t, err)
	for _, w := range []*Watch{one, two, elsewhere} {
		wait(t, w, 0)
	}
	b.set(false, Lease{Key: Key{Resource: "rack:1"}, ExpiresAt: time.Now().Add(200 * time.Millisecond)})
	h.Changed("acme", "rack:1")
	h.Changed("acme", "rack:2") // nobody watches it
	wait(t, one, 1)
	wait(t, two, 1)
	wait(t, one, 0) // it has run out
	wait(t, two, 0)
	select {
	case p := <-elsewhere.C:
		require.Fail(t, "another organization was told", "%v", p)
	default:
	}
}

// A resource that could not be read is read again, and what was missed is caught up on.
//
// Requirements: E17.
func TestHubReadsAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	h, b := runHub(t)
	b.set(true)
	w, err := h.Watch("acme", "rack:1")
	require.NoError(t, err)
	require.Eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.reads > 0 }, patience, time.Millisecond)
	b.set(false, Lease{ExpiresAt: time.Now().Add(time.Hour)})
	wait(t, w, 1)
	b.set(false)
	h.AllChanged()
	wait(t, w, 0)
}

// Who does not listen is cut, and the others go on. Nobody more than the bound can watch.
//
// Requirements: E17.
func TestHubCutsTheSlowAndIsBounded(t *testing.T) {
	t.Parallel()
	h, _ := runHub(t)
	slow, err := h.Watch("acme", "rack:1")
	require.NoError(t, err)
	fast, err := h.Watch("acme", "rack:1")
	require.NoError(t, err)
	for range maxBehind + 2 {
		h.Changed("acme", "rack:1")
		next(t, fast)
	}
	told := 0
	for range slow.C {
		told++
	}
	require.Equal(t, maxBehind, told, "then it was cut")
	slow.Close()

	for range MaxWatchersOfOne - 1 {
		_, err := h.Watch("acme", "rack:1")
		require.NoError(t, err)
	}
	_, err = h.Watch("acme", "rack:2")
	require.ErrorIs(t, err, ErrTooManyWatchers)
	fast.Close()
	fast.Close()
	_, err = h.Watch("acme", "rack:2")
	require.NoError(t, err, "a line that was closed is free again")
	for i := range MaxWatchers - MaxWatchersOfOne {
		_, err := h.Watch(string(rune('a'+i/MaxWatchersOfOne)), "rack:1")
		require.NoError(t, err)
	}
	_, err = h.Watch("somebody new", "rack:1")
	require.ErrorIs(t, err, ErrTooManyWatchers)
}

// When the hub ends, everybody is cut.
//
// Requirements: E17.
func TestHubEnds(t *testing.T) {
	t.Parallel()
	h := NewHub(&board{}, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	w, err := h.Watch("acme", "rack:1")
	require.NoError(t, err)
	stop()
	h.Run(ctx)
	for range w.C {
	}
}
