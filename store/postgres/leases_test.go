package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/lease"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// The whole excludes others on every part, a part excludes others on itself and on the whole, two parts are had by two;
// and nobody excludes themselves, in either order and under another name.
//
// Requirements: E01, E04, E06, E07, E08.
func TestWhoExcludesWhom(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	b.acquire("anna", keyOf("rack:A12"), 60)
	require.Equal(t, "anna", b.refused("bob", keyOf("rack:A12")).Holder.ID)
	require.Equal(t, "anna", b.refused("bob", keyOf("rack:A12", "u17")).Holder.ID)
	b.acquire("bob", keyOf("rack:A13"), 60)

	b.acquire("anna", keyOf("chassis:7", "node-1"), 60)
	b.acquire("bob", keyOf("chassis:7", "node-2"), 60)
	require.Equal(t, "node-1", b.refused("cleo", keyOf("chassis:7")).Key.Part, "the first in the way")
	require.Equal(t, "node-2", b.refused("anna", keyOf("chassis:7")).Key.Part)
	require.Equal(t, "bob", b.refused("anna", keyOf("chassis:7", "node-2")).Holder.ID)

	b.acquire("anna", keyOf("rack:A12", "u17"), 60) // the whole, then a part
	b.acquire("cleo", keyOf("machine:1", "disks"), 60)
	b.acquire("cleo", keyOf("machine:1"), 60) // a part, then the whole
	other := writer("cleo")
	other.Holder.Name = "the other tab"
	again, err := b.two.Acquire(t.Context(), other, keyOf("machine:1"), 90)
	require.NoError(t, err)
	require.Equal(t, "the other tab", again.Lease.Holder.Name)
	require.Equal(t, []string{":cleo", "disks:cleo"}, b.present("machine:1"))

	theirs := writer("bob")
	theirs.Organization = otherOrg
	_, err = b.one.Acquire(t.Context(), theirs, keyOf("rack:A12"), 60)
	require.NoError(t, err, "another organization has racks of its own")
}

// Release tells whether it was held; leave gives back all that the holder has of the resource and nothing of others.
//
// Requirements: E12, E13.
func TestReleaseAndLeave(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	release := func(holder string, key lease.Key) lease.Released {
		got, err := b.two.Release(t.Context(), writer(holder), key)
		require.NoError(t, err)
		return got
	}
	b.acquire("anna", keyOf("rack:A12", "u17"), 60)
	require.Equal(t, lease.Released{}, release("anna", keyOf("rack:A12")), "the part is not the whole")
	require.Equal(t, lease.Released{}, release("bob", keyOf("rack:A12", "u17")), "it is not bob's")
	require.Equal(t, lease.Released{Held: true}, release("anna", keyOf("rack:A12", "u17")))
	require.Equal(t, lease.Released{}, release("anna", keyOf("rack:A12", "u17")), "not twice")

	for _, part := range []string{"u1", "u2", "u3"} {
		b.acquire("anna", keyOf("rack:A12", part), 60)
	}
	b.acquire("anna", keyOf("rack:A13"), 60)
	b.acquire("bob", keyOf("rack:A12", "u9"), 60)
	left, err := b.two.Leave(t.Context(), writer("anna"), "rack:A12")
	require.NoError(t, err)
	require.Len(t, left, 3)
	require.Equal(t, []string{"u9:bob"}, b.present("rack:A12"))
	require.Equal(t, []string{":anna"}, b.present("rack:A13"))
	left, err = b.two.Leave(t.Context(), writer("anna"), "rack:A12")
	require.NoError(t, err)
	require.Empty(t, left)
}

// A take-over removes what overlaps, leaves alone what does not, asks the policy for each lease that would go, and after
// one no nothing is changed.
//
// Requirements: E15, E19, E21.
func TestTakeOverLease(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	take := func(holder string, key lease.Key) (lease.TakeOver, error) {
		return b.two.TakeOver(t.Context(), writer(holder), key, 60, "anna is at lunch")
	}
	b.acquire("anna", keyOf("rack:A12", "u1"), 60)
	b.acquire("bob", keyOf("rack:A12", "u2"), 60)
	b.acquire("cleo", keyOf("rack:A12", "u3"), 60)
	b.rights.keeps["bob"] = true
	_, err := take("cleo", keyOf("rack:A12"))
	require.ErrorIs(t, err, lease.ErrEditRefused)
	require.NotErrorIs(t, err, lease.ErrHeld)
	require.Equal(t, []string{"u1:anna", "u2:bob", "u3:cleo"}, b.present("rack:A12"), "nothing was changed")
	require.Equal(t, []string{"rack:A12 part u1", "rack:A12 part u2"}, b.rights.asked, "for every one, and not for her own")

	got, err := take("cleo", keyOf("rack:A12", "u1"))
	require.NoError(t, err)
	require.Equal(t, "anna", got.Removed[0].Holder.ID)
	require.Equal(t, []string{"u1:cleo", "u2:bob", "u3:cleo"}, b.present("rack:A12"))
	_, err = b.heartbeat("anna", keyOf("rack:A12", "u1"), 60)
	require.ErrorIs(t, err, lease.ErrLost)

	b.rights.keeps["bob"] = false
	got, err = take("dora", keyOf("rack:A12"))
	require.NoError(t, err)
	require.Len(t, got.Removed, 3)
	require.Equal(t, b.now(t).Add(time.Minute), got.Lease.ExpiresAt)
	require.Equal(t, []string{":dora"}, b.present("rack:A12"))
	require.Equal(t, "anna is at lunch", read[string](t, b.pool,
		`SELECT detail ->> 'reason' FROM audit WHERE action = 'lease.taken_over' AND detail ->> 'holder' = 'dora'`))

	b.rights.lose("eve")
	_, err = take("eve", keyOf("rack:A12"))
	require.ErrorIs(t, err, lease.ErrEditRefused)
	require.Equal(t, []string{":dora"}, b.present("rack:A12"))
	got, err = take("dora", keyOf("rack:A12"))
	require.NoError(t, err)
	require.Empty(t, got.Removed, "from nobody")
}

// A database that is away is said to be away, never to be held by somebody.
//
// Requirements: E23, E28.
func TestLeasesWithTheDatabaseAway(t *testing.T) {
	t.Parallel()
	pool := openPool(t, postgrestest.URL(t), 1)
	service := lease.NewService(NewLeases(pool), &rights{})
	pool.Close()
	for name, err := range map[string]error{
		"acquire":  func() error { _, err := service.Acquire(t.Context(), writer("anna"), keyOf("a"), 60); return err }(),
		"release":  func() error { _, err := service.Release(t.Context(), writer("anna"), keyOf("a")); return err }(),
		"presence": func() error { _, err := service.Presence(t.Context(), writer("anna"), "a"); return err }(),
		"asking": func() error {
			_, _, err := NewLeasePresence(pool).Presence(t.Context(), writer("anna"), "a")
			return err
		}(),
		"purge": func() error { _, err := service.Purge(t.Context()); return err }(),
	} {
		require.ErrorIs(t, err, reservation.ErrUnavailable, name)
		require.NotErrorIs(t, err, lease.ErrHeld, name)
	}
}
