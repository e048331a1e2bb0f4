package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/lease"
)

// Granted for so many seconds; renewed for its holder; after its end, and at it, the next one's, with no purge.
//
// Requirements: E08, E09, E14, E18. Cases: LE-09.
func TestLifeOfALease(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for _, seconds := range []int64{1, 60, 3 * 3600, 86400} {
		key := keyOf(fmt.Sprint("lived:", seconds))
		whole := time.Duration(seconds) * time.Second
		start := b.now(t)
		got := b.acquire("anna", key, seconds)
		require.Equal(t, start.Add(whole), got.ExpiresAt)
		require.Equal(t, time.UTC, got.ExpiresAt.Location())
		b.advance(t, whole*99/100)
		require.Equal(t, "anna", b.refused("bob", key).Holder.ID, "at 99 %")
		b.advance(t, whole-whole*99/100-time.Microsecond)
		require.Equal(t, int64(1), func() int64 { l := b.refused("bob", key); return l.SecondsLeftAt(b.now(t)) }())
		b.advance(t, time.Microsecond)
		require.Empty(t, b.present(key.Resource))
		released, err := b.one.Release(t.Context(), writer("anna"), key)
		require.NoError(t, err)
		require.Equal(t, lease.Released{Lapsed: true}, released, "it had run out")
		b.acquire("bob", key, 60)
	}

	first := b.acquire("anna", keyOf("rack:A12"), 60)
	b.advance(t, 50*time.Second)
	kept, err := b.heartbeat("anna", keyOf("rack:A12"), 30)
	require.NoError(t, err)
	require.Equal(t, b.now(t).Add(30*time.Second), kept.ExpiresAt, "from now on, not from the old end")
	require.Equal(t, first.AcquiredAt, kept.AcquiredAt)
	renewed := b.acquire("anna", keyOf("rack:A12"), 60)
	require.Equal(t, b.now(t).Add(time.Minute), renewed.ExpiresAt)
	require.Greater(t, renewed.Version, kept.Version)
}

// The clock is the database's: it stands in 2031 here, and a lease ends when that clock says so. Ends are whole seconds
// whenever the claim came.
//
// Requirements: E18.
func TestLeasesGoByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	b.advance(t, 700*time.Millisecond)
	got := b.acquire("anna", keyOf("rack:A12"), 60)
	require.Zero(t, got.ExpiresAt.Nanosecond())
	require.InDelta(t, 60, got.ExpiresAt.Sub(b.now(t)).Seconds(), 0.5)
	require.Equal(t, 2031, got.ExpiresAt.Year())
	b.advance(t, -time.Hour)
	b.refused("bob", keyOf("rack:A12"))
	require.Equal(t, got.ExpiresAt, read[time.Time](t, b.pool, `SELECT expires_at FROM leases`).UTC())
}

// An expired lease that nobody took is kept by its holder's heartbeat; one that was taken, even if it was given back since,
// is lost.
//
// Requirements: E10, E11, E14. Cases: LE-01.
func TestHeartbeatAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	key := keyOf("rack:A12", "u17")
	b.acquire("anna", key, 10)
	b.advance(t, time.Hour)
	require.Empty(t, b.present("rack:A12"))
	_, err := b.heartbeat("anna", key, 60)
	require.NoError(t, err, "nobody took it")
	require.Equal(t, []string{"u17:anna"}, b.present("rack:A12"))

	b.advance(t, time.Hour)
	b.acquire("bob", keyOf("rack:A12"), 60) // the whole, which overlaps it
	_, err = b.heartbeat("anna", key, 60)
	var lost *lease.LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, "bob", lost.By.Holder.ID)
	_, err = b.one.Release(t.Context(), writer("bob"), keyOf("rack:A12"))
	require.NoError(t, err)
	_, err = b.heartbeat("anna", key, 60)
	require.ErrorAs(t, err, &lost, "bob may have changed what anna's page shows")
	require.Nil(t, lost.By)

	b.acquire("anna", key, 60)
	b.advance(t, time.Minute)
	b.acquire("bob", key, 60) // the same key
	_, err = b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrLost)
	_, err = b.heartbeat("cleo", keyOf("never"), 60)
	require.ErrorIs(t, err, lease.ErrLost)
	require.NotErrorIs(t, err, lease.ErrHeld)
}

// With a ceiling no heartbeat and no renewal keeps a lease longer; the next one has it at the latest one lease later.
//
// Requirements: E09. Cases: LE-06.
func TestCeilingOfALease(t *testing.T) {
	t.Parallel()
	b := setupLeases(t, lease.Ceiling(time.Hour))
	key := keyOf("rack:A12")
	b.acquire("anna", key, 60)
	for range 60 {
		_, err := b.heartbeat("anna", key, 60)
		require.NoError(t, err)
		b.advance(t, time.Minute-time.Second)
	}
	b.advance(t, time.Minute)
	_, err := b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrCeiling)
	b.advance(t, time.Minute)
	b.acquire("bob", key, 60)
	renewals := 0
	for err = nil; err == nil; renewals++ { // acquiring again is no way around it
		b.advance(t, 59*time.Second)
		_, err = b.two.Acquire(t.Context(), writer("bob"), key, 60)
	}
	require.ErrorIs(t, err, lease.ErrCeiling)
	require.Equal(t, 62, renewals, "an hour")
	b.advance(t, time.Minute)
	b.acquire("bob", key, 60) // nobody wanted it meanwhile
}

// The purge deletes what ran out long ago and passes over what is locked; nothing else depends on it.
//
// Requirements: E16.
func TestPurgeOfLeases(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	b.acquire("anna", keyOf("rack:old"), 60)
	b.acquire("anna", keyOf("rack:locked"), 60)
	b.advance(t, 12*time.Hour)
	b.acquire("anna", keyOf("rack:young"), 60)
	b.acquire("anna", keyOf("rack:live"), 86400)
	b.advance(t, 12*time.Hour+2*time.Minute)
	slow := b.begin(t)
	require.Equal(t, 1, read[int](t, slow, `SELECT 1 FROM leases WHERE resource = 'rack:locked' FOR UPDATE`))
	purge := func() int64 {
		gone, err := b.one.Purge(t.Context())
		require.NoError(t, err)
		return gone
	}
	require.Equal(t, int64(1), purge())
	require.Zero(t, purge())
	require.NoError(t, slow.Rollback(t.Context()))
	require.Equal(t, int64(1), purge())
	_, err := b.heartbeat("anna", keyOf("rack:young"), 60)
	require.NoError(t, err)
	require.Equal(t, []string{":anna"}, b.present("rack:live"))
	_, err = b.heartbeat("anna", keyOf("rack:old"), 60)
	require.ErrorIs(t, err, lease.ErrLost)
	purge()
	require.Equal(t, 2, read[int](t, b.pool, `SELECT count(*) FROM lease_resources WHERE resource IN ('rack:live', 'rack:young')`))
}
