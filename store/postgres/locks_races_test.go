package postgres

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/locking"
)

// Of many who ask at once one gets it, for a new key as for a dead one, and the fences of a key grow in the order in
// which it was had.
//
// Requirements: L02, L37.
func TestGrantGoesToOneOfMany(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	var last int64
	for range 20 {
		grants := make(chan *locking.Grant, 8)
		var all sync.WaitGroup
		for i := range cap(grants) {
			service := []*locking.Grants{b.one, b.two}[i%2]
			all.Go(func() {
				grant, _, err := service.Acquire(t.Context(), org, "key", time.Minute)
				if err != nil {
					t.Error(err)
				}
				grants <- grant
			})
		}
		all.Wait()
		close(grants)
		var got []*locking.Grant
		for grant := range grants {
			if grant != nil {
				got = append(got, grant)
			}
		}
		require.Len(t, got, 1)
		require.Greater(t, got[0].Fence, last)
		last = got[0].Fence
		b.advance(t, time.Minute)
	}
}

// A renewal that had to wait for its row looks at the clock after the wait: if the lock ran out meanwhile, it is lost.
//
// Requirements: L05, L37. Faults: F-R10.
func TestGrantIsNotRenewedAfterAWaitBeyondItsDeadline(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	grant := b.take(t, "key", time.Minute)
	slow := b.begin(t)
	require.Equal(t, 1, read[int](t, slow, `SELECT 1 FROM locks WHERE key = 'key' FOR UPDATE`))

	outcome := make(chan error, 1)
	b.waits(t, func() {
		_, err := b.one.Renew(t.Context(), org, "key", grant.Token, time.Hour)
		outcome <- err
	})
	b.advance(t, time.Minute)
	require.NoError(t, slow.Rollback(t.Context()), "the row is as it was")
	require.Equal(t, locking.ErrNotOwner, <-outcome)
}

// Whoever asks for a dead lock while another takes it finds that one's lock after the wait.
//
// Requirements: L02, L37.
func TestGrantTakenDuringTheWaitIsContention(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	b.take(t, "key", time.Minute)
	b.advance(t, time.Minute)
	slow := b.begin(t)
	_, err := slow.Exec(t.Context(), acquireLockSQL, org, "key", []byte("theirs"), int64(60_000), int64(0), nil)
	require.NoError(t, err)

	outcome := make(chan *locking.Grant, 1)
	b.waits(t, func() {
		grant, _, err := b.one.Acquire(t.Context(), org, "key", time.Minute)
		if err != nil {
			t.Error(err)
		}
		outcome <- grant
	})
	require.NoError(t, slow.Commit(t.Context()))
	require.Nil(t, <-outcome)
	_, err = b.one.Renew(t.Context(), org, "key", "theirs", time.Minute)
	require.NoError(t, err)
}

// A fence is drawn under the row's lock: whoever waited for its row has a larger one than all that were given out
// meanwhile, also if it drew a smaller one before the wait.
//
// Requirements: L37. Cases: LE-01. Faults: F-R10.
func TestFenceIsDrawnAfterTheWait(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	slow := b.begin(t)
	take := func() (fence int64) {
		var granted bool
		require.NoError(t, slow.QueryRow(t.Context(), acquireLockSQL, org, "key", []byte("theirs"), int64(1), int64(0), nil).Scan(&granted, &fence, nil, nil, nil))
		require.True(t, granted)
		return fence
	}
	first := take()
	outcome := make(chan *locking.Grant, 1)
	b.waits(t, func() {
		grant, _, err := b.one.Acquire(t.Context(), org, "key", time.Hour)
		if err != nil {
			t.Error(err)
		}
		outcome <- grant
	})
	b.advance(t, time.Second)
	second := take()
	require.Greater(t, second, first)
	b.advance(t, time.Second)
	require.NoError(t, slow.Commit(t.Context()))
	grant := <-outcome
	require.NotNil(t, grant)
	require.Greater(t, grant.Fence, second)
}

// Asking for a live lock neither waits for its holder nor writes.
//
// Requirements: L03, L37.
func TestContentionWaitsForNobody(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	b.take(t, "key", time.Minute)
	slow := b.begin(t)
	require.Equal(t, 1, read[int](t, slow, `SELECT 1 FROM locks WHERE key = 'key' FOR UPDATE`))
	drawn := read[int64](t, b.pool, `SELECT last_value FROM lock_fences`)
	for range 3 {
		b.requireTaken(t, "key")
	}
	require.Equal(t, drawn, read[int64](t, b.pool, `SELECT last_value FROM lock_fences`))
}
