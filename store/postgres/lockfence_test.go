package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/identity"
	"allocator/inventory"
	"allocator/locking"
	"allocator/reservation"
)

// setupFence has a ready server beside the locks, and the service that changes its state.
func setupFence(t *testing.T) (*locksBundle, func(proof reservation.LockProof, to inventory.State) error) {
	t.Helper()
	b := setupLocks(t)
	server := newID()
	execute(t, b.pool, `INSERT INTO servers (organization_id, id, source, external_id, site, state) VALUES ('acme', $1, 'test', 'one', 'FSN1', 'ready')`, server)
	service := reservation.NewService(NewReservations(openPool(t, b.url, 4)), reservation.TokenKeys{})
	caller := identity.LocalCaller(org, identity.Actor{Kind: identity.ActorSystem, ID: "test"})
	return b, func(proof reservation.LockProof, to inventory.State) error {
		_, err := service.ChangeServerState(t.Context(), caller, reservation.StateChange{
			ServerID: inventory.ServerID(formatID(serverIDPrefix, server)), State: to, Reason: "fan", Lock: proof,
		})
		return err
	}
}

// proofOf is what the holder of a lock shows.
func proofOf(g locking.Grant) reservation.LockProof {
	return reservation.LockProof{Key: g.Key, Fence: g.Fence}
}

func (b *locksBundle) serverState(t *testing.T) (state string, version, events int) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT state, version, (SELECT count(*) FROM event_feed) FROM servers`).Scan(&state, &version, &events))
	return state, version, events
}

// What is written under a lock carries its fence, and only the newest fence of the key writes: a holder that slept
// through the end of its lock changes nothing once somebody else has had it.
//
// Requirements: L37.
// Cases: LE-01.
func TestOnlyTheNewestFenceWrites(t *testing.T) {
	t.Parallel()
	b, change := setupFence(t)
	const key = "machine:42:bmc"
	first := b.take(t, key, time.Minute)
	require.NoError(t, change(proofOf(first), inventory.StateMaintenance))
	b.advance(t, time.Minute)
	require.NoError(t, change(proofOf(first), inventory.StateReady), "its time is over, but nobody else has had it")
	second := b.take(t, key, time.Minute)
	other := b.take(t, "machine:43:bmc", time.Minute)

	state, version, events := b.serverState(t)
	for name, proof := range map[string]reservation.LockProof{
		"an older fence":              proofOf(first),
		"one that nobody was given":   {Key: key, Fence: other.Fence + 1},
		"the fence of another key":    {Key: key, Fence: other.Fence},
		"a key that nobody has taken": {Key: "machine:44:bmc", Fence: second.Fence},
	} {
		for _, to := range []inventory.State{inventory.StateMaintenance, inventory.StateReady} {
			require.ErrorIs(t, change(proof, to), reservation.ErrStaleFence, "%s, to %s", name, to)
		}
	}
	nowState, nowVersion, nowEvents := b.serverState(t)
	require.Equal(t, []any{state, version, events}, []any{nowState, nowVersion, nowEvents}, "nothing was changed")

	require.NoError(t, change(proofOf(second), inventory.StateMaintenance))
	require.NoError(t, change(reservation.LockProof{}, inventory.StateReady), "nobody has to show a lock")
	theirs, _, err := b.one.Acquire(t.Context(), otherOrg, "machine:50:bmc", time.Minute)
	require.NoError(t, err)
	require.ErrorIs(t, change(proofOf(*theirs), inventory.StateMaintenance), reservation.ErrStaleFence, "another organization's lock")
}

// A lock that has been over for so long that its row is gone may have been somebody else's in between.
//
// Requirements: L37.
func TestFenceOfAForgottenLockIsStale(t *testing.T) {
	t.Parallel()
	b, change := setupFence(t)
	grant := b.take(t, "key", time.Minute)
	b.advance(t, 25*time.Hour)
	_, err := b.store.Purge(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, change(proofOf(grant), inventory.StateMaintenance), reservation.ErrStaleFence)
}

// The fence is looked at when the server has been had: a lock that is lost while its holder waits for the server is lost.
//
// Requirements: L37.
// Cases: LE-01.
func TestFenceIsReadAfterTheWaitForTheServer(t *testing.T) {
	t.Parallel()
	b, change := setupFence(t)
	mine := b.take(t, "key", time.Minute)
	slow := b.begin(t)
	_, err := slow.Exec(t.Context(), `SELECT FROM servers FOR UPDATE`)
	require.NoError(t, err)
	outcome := make(chan error, 1)
	b.waits(t, func() { outcome <- change(proofOf(mine), inventory.StateMaintenance) })
	b.advance(t, time.Minute)
	b.take(t, "key", time.Minute)
	require.NoError(t, slow.Rollback(t.Context()))
	require.ErrorIs(t, <-outcome, reservation.ErrStaleFence)
}

// A grant that is on its way counts: whoever shows the older fence waits for it, and is refused.
//
// Requirements: L37.
// Cases: LE-01.
func TestFenceWaitsForAGrantOnItsWay(t *testing.T) {
	t.Parallel()
	b, change := setupFence(t)
	mine := b.take(t, "key", time.Minute)
	b.advance(t, time.Minute)
	slow := b.begin(t)
	_, err := slow.Exec(t.Context(), acquireLockSQL, org, "key", []byte("theirs"), int64(60_000), int64(0), nil)
	require.NoError(t, err)
	outcome := make(chan error, 1)
	b.waits(t, func() { outcome <- change(proofOf(mine), inventory.StateMaintenance) })
	require.NoError(t, slow.Commit(t.Context()))
	require.ErrorIs(t, <-outcome, reservation.ErrStaleFence)
}

// Nobody is granted the lock between the look at the fence and the commit of what it protects: the next holder finds
// all that was written under the old fence.
//
// Requirements: L27, L37.
// Cases: LE-01.
func TestGrantWaitsForWhatItsFenceProtects(t *testing.T) {
	t.Parallel()
	b, _ := setupFence(t)
	mine := b.take(t, "key", time.Minute)
	b.advance(t, time.Minute)
	var granted *locking.Grant
	taken := make(chan error, 1)
	err := NewReservations(openPool(t, b.url, 4)).InTx(t.Context(), func(ctx context.Context, tx reservation.Tx) error {
		if err := tx.CheckFence(ctx, org, proofOf(mine)); err != nil {
			return err
		}
		b.waits(t, func() { //nolint:contextcheck // another program's
			var err error
			granted, _, err = b.one.Acquire(t.Context(), org, "key", time.Minute)
			taken <- err
		})
		require.Empty(t, taken)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, <-taken)
	require.Greater(t, granted.Fence, mine.Fence)
}
