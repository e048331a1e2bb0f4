package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/lease"
	"allocator/reservation"
)

// Who may not edit gets nothing and sees nothing; whoever loses the right loses the lease at the next heartbeat, and the
// next one can have it at once. A policy that cannot be asked is a failure and no refusal.
//
// Requirements: E19, E20, E21.
func TestPolicyIsAskedEachTime(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	key := keyOf("rack:A12")
	b.acquire("anna", key, 60)
	b.rights.lose("anna")
	_, err := b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrEditRefused)
	require.NotErrorIs(t, err, lease.ErrLost)
	require.Empty(t, b.present("rack:A12"), "it is free")
	b.acquire("bob", key, 60)
	_, err = b.one.Acquire(t.Context(), writer("anna"), keyOf("rack:A13"), 60)
	require.ErrorIs(t, err, lease.ErrEditRefused)
	_, err = b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrEditRefused)
	require.Equal(t, []string{":bob"}, b.present("rack:A12"), "what is bob's stays")
	_, err = b.one.Presence(t.Context(), writer("anna"), "rack:A12")
	require.ErrorIs(t, err, lease.ErrEditRefused)

	b.rights.unsettle = reservation.ErrUnavailable
	_, err = b.heartbeat("bob", key, 60)
	require.ErrorIs(t, err, reservation.ErrUnavailable)
	require.NotErrorIs(t, err, lease.ErrEditRefused)
	require.Equal(t, 1, read[int](t, b.pool, `SELECT count(*) FROM leases`))
}

// A key edits while it is live and has the scope operator, and what its organization has alone. Who works on the database
// itself may; nobody passes for that by a key that is none.
//
// Requirements: E15, E19.
func TestPolicyOfStaff(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	policy := NewLeasePolicy(b.pool)
	b.acquire("anna", keyOf("rack:A12"), 3600)
	execute(t, b.pool, `INSERT INTO api_keys (organization_id, id, name, scopes, secret_hash, created_by_kind, created_by_id, expires_at, revoked_at, revoked_by_kind, revoked_by_id)
		SELECT 'acme', id::uuid, 'k', scopes, sha256(''), 'system', 'x', expires_at, revoked_at, CASE WHEN revoked_at IS NOT NULL THEN 'person' END, CASE WHEN revoked_at IS NOT NULL THEN 'x' END
		FROM (VALUES ('00000000-0000-7000-8000-000000000001', ARRAY ['operator', 'support'], NULL::timestamptz, NULL::timestamptz),
			('00000000-0000-7000-8000-000000000002', ARRAY ['admin'], NULL, NULL),
			('00000000-0000-7000-8000-000000000003', ARRAY ['operator'], clock_timestamp() + interval '1 minute', NULL),
			('00000000-0000-7000-8000-000000000004', ARRAY ['operator'], NULL, clock_timestamp())) AS made (id, scopes, expires_at, revoked_at)`)
	const key = "key_0000000000007000800000000000000"
	may := func(organization, credential string) bool {
		w := lease.Writer{Organization: organization, Credential: credential}
		got, err := policy.MayEdit(t.Context(), w, keyOf("rack:A12"))
		require.NoError(t, err)
		seen, sees, err := NewLeasePresence(b.pool).Presence(t.Context(), w, "rack:A12")
		require.NoError(t, err)
		require.Equal(t, got, sees)
		require.Len(t, seen.Leases, map[bool]int{true: 1}[got && organization == org])
		return got
	}
	require.True(t, may(org, key+"1"))
	require.False(t, may(otherOrg, key+"1"), "another organization's")
	require.False(t, may(org, key+"2"), "without the scope")
	require.True(t, may(org, key+"3"))
	b.advance(t, time.Minute)
	require.False(t, may(org, key+"3"), "at its end")
	require.False(t, may(org, key+"4"), "revoked")
	require.False(t, may(org, key+"9"), "unknown")
	require.False(t, may(org, "no key"))
	require.True(t, may(org, ""))

	from := lease.Lease{Credential: key + "1"}
	require.True(t, policy.MayTakeOver(lease.Writer{Credential: key + "1"}, from), "the same key")
	require.False(t, policy.MayTakeOver(lease.Writer{Credential: key + "3", Rights: []string{"operator"}}, from))
	require.True(t, policy.MayTakeOver(lease.Writer{Credential: key + "3", Rights: []string{"operator", "admin"}}, from))
	require.True(t, policy.MayTakeOver(lease.Writer{}, from), "on the database itself")
}
