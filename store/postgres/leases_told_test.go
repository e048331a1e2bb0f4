package postgres

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/lease"
)

// noted remembers what it was told.
type noted struct{ told chan string }

func (n *noted) Changed(organization, resource string) { n.told <- organization + " " + resource }
func (n *noted) AllChanged()                           { n.told <- "all" }

func (n *noted) next(t *testing.T) string {
	t.Helper()
	select {
	case told := <-n.told:
		return told
	case <-time.After(patience):
		require.Fail(t, "nothing was told")
		return ""
	}
}

// Each step that changes a lease is told when its transaction commits, and no other. A connection that was lost is made
// anew, and then everything may have changed.
//
// Requirements: E17.
func TestChangesOfLeasesAreTold(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	n := &noted{told: make(chan string, 100)}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	t.Cleanup(func() { stop(); done.Wait() })
	done.Go(func() { ListenLeases(ctx, b.pool, n, false, slog.New(slog.DiscardHandler)) })
	require.Equal(t, "all", n.next(t))

	key := keyOf(`rack: "ä"`)
	at := "acme " + key.Resource
	b.acquire("anna", key, 60)
	require.Equal(t, at, n.next(t), "acquired")
	_, err := b.heartbeat("anna", key, 60)
	require.NoError(t, err)
	require.Equal(t, at, n.next(t), "kept")
	_, err = b.one.TakeOver(t.Context(), writer("bob"), key, 60, "")
	require.NoError(t, err)
	require.Equal(t, at, n.next(t), "taken over")
	for _, nothing := range []error{
		func() error { _, err := b.one.Release(t.Context(), writer("anna"), key); return err }(),
		func() error { _, err := b.one.Leave(t.Context(), writer("anna"), key.Resource); return err }(),
	} {
		require.NoError(t, nothing)
	}
	b.refused("anna", key)
	_, err = b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrLost)
	around := b.begin(t)
	_, err = lease.NewService(LeasesIn(around), b.rights).Acquire(t.Context(), writer("bob"), keyOf("undone"), 60)
	require.NoError(t, err)
	require.NoError(t, around.Rollback(t.Context()))
	_, err = b.one.Release(t.Context(), writer("bob"), key)
	require.NoError(t, err)
	require.Equal(t, at, n.next(t), "released, and nothing before")
	b.acquire("anna", key, 60)
	n.next(t)
	_, err = b.one.Leave(t.Context(), writer("anna"), key.Resource)
	require.NoError(t, err)
	require.Equal(t, at, n.next(t), "left")
	b.acquire("anna", key, 60)
	n.next(t)
	b.rights.lose("anna")
	_, err = b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrEditRefused)
	require.Equal(t, at, n.next(t), "freed")

	require.Equal(t, 1, read[int](t, b.pool, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND query = 'LISTEN allocator_leases'`))
	require.Equal(t, "all", n.next(t), "it listens again")
	b.acquire("bob", keyOf("after"), 60)
	require.Equal(t, "acme after", n.next(t))
}

// Behind a pooler that gives no notifications everything is asked for now and then.
//
// Requirements: E17.
func TestLeasesArePolledBehindAPooler(t *testing.T) {
	t.Parallel()
	n := &noted{told: make(chan string, 100)}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { ListenLeases(ctx, nil, n, true, slog.New(slog.DiscardHandler)) })
	require.Equal(t, "all", n.next(t))
	require.Equal(t, "all", n.next(t))
	stop()
	done.Wait()
}
