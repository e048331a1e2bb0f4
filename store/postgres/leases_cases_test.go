package postgres

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/lease"
	"allocator/locking"
)

// A lease of 10 s ran out a second ago. Nobody took it: a heartbeat keeps what it was, and asking for it is a new grant. Or
// somebody took it: then neither gets it back. A lock is not kept by a renewal either way, since work under it may have been
// done by another meanwhile.
//
// Requirements: E10, E11, L05, L08. Cases: LE-01.
func TestCaseAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	kept, granted, lost := keyOf("rack:kept"), keyOf("rack:granted"), keyOf("rack:lost")
	first := map[lease.Key]lease.Lease{}
	for _, key := range []lease.Key{kept, granted, lost} {
		first[key] = b.acquire("a", key, 10)
	}
	free, taken := b.take(t, "free", 10*time.Second), b.take(t, "taken", 10*time.Second)
	b.advance(t, 11*time.Second)
	b.acquire("b", lost, 60)
	theirs := b.take(t, "taken", time.Minute)

	got, err := b.heartbeat("a", kept, 60)
	require.NoError(t, err)
	require.Equal(t, first[kept].AcquiredAt, got.AcquiredAt, "it goes on")
	require.Greater(t, got.Version, first[kept].Version)
	again := b.acquire("a", granted, 60)
	require.Equal(t, b.now(t), again.AcquiredAt, "it begins anew")
	require.Greater(t, again.Version, first[granted].Version)
	require.Equal(t, "b", b.refused("a", lost).Holder.ID)
	_, err = b.heartbeat("a", lost, 60)
	require.ErrorIs(t, err, lease.ErrLost)
	require.Equal(t, []string{":b"}, b.present("rack:lost"))

	for _, grant := range []locking.Grant{free, taken} {
		_, err := b.locksBundle.two.Renew(t.Context(), org, grant.Key, grant.Token, time.Minute)
		require.Equal(t, locking.ErrNotOwner, err, grant.Key)
	}
	require.Greater(t, b.take(t, "free", time.Minute).Fence, free.Fence)
	require.Equal(t, time.Minute, b.requireTaken(t, "taken"))
	require.Greater(t, theirs.Fence, taken.Fence)
}

// Two hours with a ceiling of one: A heartbeats every 3 s and is told at the hour that this is the ceiling, and not that
// somebody has it; B, who asks as often as that, has it at the latest one lease later, and A keeps nothing by going on.
//
// Requirements: E08, E09. Cases: LE-06.
func TestCaseOfTheLoopingClient(t *testing.T) {
	t.Parallel()
	const step, whole, seconds = 3 * time.Second, time.Hour, 60
	b := setupLeases(t, lease.Ceiling(whole))
	key := keyOf("rack:A12")
	start := b.now(t)
	b.acquire("a", key, seconds)
	var ceiling, theirs time.Duration
	for past := step; past <= 2*whole && theirs == 0; past += step {
		b.advance(t, step)
		_, err := b.heartbeat("a", key, seconds)
		switch {
		case past < whole:
			require.NoError(t, err, "after %s", past)
		case ceiling == 0:
			require.ErrorIs(t, err, lease.ErrCeiling, "after %s", past)
			require.NotErrorIs(t, err, lease.ErrLost)
			require.NotErrorIs(t, err, lease.ErrHeld)
			ceiling = past
		}
		if past < whole-seconds*time.Second && past%time.Minute != 0 {
			continue // nobody could have got it: B asks less often, which saves time
		}
		_, err = b.one.Acquire(t.Context(), writer("b"), key, seconds)
		if held := (*lease.HeldError)(nil); !errors.As(err, &held) {
			require.NoError(t, err)
			theirs = past
		}
	}
	require.Equal(t, whole, ceiling)
	require.LessOrEqual(t, theirs, ceiling+seconds*time.Second)
	require.Equal(t, []string{":b"}, b.present("rack:A12"))
	_, err := b.heartbeat("a", key, seconds)
	require.ErrorIs(t, err, lease.ErrLost)
	require.Equal(t, start.Add(theirs), b.now(t))
}

// The holder's process dies and comes back. Under the name that it had, spelled byte for byte, the lease is its own at once;
// under another spelling it is somebody else until the lease is over. A lock belongs to its token: who has it goes on, who
// lost it waits. Nobody has to repair anything.
//
// Requirements: E06, E08, L08. Cases: LE-08.
func TestCaseOfTheHolderThatComesBack(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	key := keyOf("rack:A12")
	first := b.acquire("Host-A", key, 60)
	lock := b.take(t, "Host-A", time.Minute)
	b.advance(t, 30*time.Second)
	reborn := lease.NewService(NewLeases(openPool(t, b.url, 1)), b.rights)

	_, err := reborn.Heartbeat(t.Context(), writer("host-a"), key, 60)
	require.ErrorIs(t, err, lease.ErrLost)
	_, err = reborn.Acquire(t.Context(), writer("host-a"), key, 60)
	require.ErrorIs(t, err, lease.ErrHeld)
	for _, again := range []func() (lease.Granted, error){
		func() (lease.Granted, error) { return reborn.Heartbeat(t.Context(), writer("Host-A"), key, 60) },
		func() (lease.Granted, error) { return reborn.Acquire(t.Context(), writer("Host-A"), key, 60) },
	} {
		got, err := again()
		require.NoError(t, err)
		require.Equal(t, first.AcquiredAt, got.Lease.AcquiredAt, "the same lease")
	}
	require.Equal(t, 30*time.Second, b.requireTaken(t, "Host-A"), "without the token its own lock is somebody's")
	_, err = b.locksBundle.two.Renew(t.Context(), org, "Host-A", lock.Token, time.Minute)
	require.NoError(t, err)

	b.advance(t, time.Minute)
	got, err := reborn.Acquire(t.Context(), writer("host-a"), key, 60)
	require.NoError(t, err)
	require.Equal(t, b.now(t), got.Lease.AcquiredAt)
	require.Greater(t, got.Lease.Version, first.Version)
	require.Greater(t, b.take(t, "Host-A", time.Minute).Fence, lock.Fence)
}

// Leases live as long as they were given, also through a restart of the service and runs of the purge: active at 99 % of their
// time, free at 101 %. Who gives back an active one is told so, who gives back one that is over is told why it was none.
//
// Requirements: E12, E14, E16. Cases: LE-09.
func TestCaseOfLeasesOfAnyLength(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for _, seconds := range []int64{60, 3 * 3600, 86400} {
		active, lapsed := keyOf(fmt.Sprint("active:", seconds)), keyOf(fmt.Sprint("lapsed:", seconds))
		hundredth := time.Duration(seconds) * time.Second / 100
		b.acquire("anna", active, seconds)
		b.acquire("anna", lapsed, seconds)
		b.advance(t, 50*hundredth)
		restarted := lease.NewService(NewLeases(openPool(t, b.url, 1)), b.rights)
		purge := func() {
			_, err := restarted.Purge(t.Context())
			require.NoError(t, err)
		}
		release := func(key lease.Key) lease.Released {
			got, err := restarted.Release(t.Context(), writer("anna"), key)
			require.NoError(t, err)
			return got
		}
		purge()
		b.advance(t, 49*hundredth)
		purge()
		for _, key := range []lease.Key{active, lapsed} {
			require.Equal(t, []string{":anna"}, b.present(key.Resource), "at 99 %")
			require.Equal(t, "anna", b.refused("bob", key).Holder.ID)
		}
		require.Equal(t, lease.Released{Held: true}, release(active))
		b.advance(t, 2*hundredth)
		purge()
		require.Empty(t, b.present(lapsed.Resource), "at 101 %")
		require.Equal(t, lease.Released{Lapsed: true}, release(lapsed))
		b.acquire("bob", lapsed, 60)
	}
}
