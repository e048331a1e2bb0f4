package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/locking"
)

// A lock of another program from start to end, over two replicas: any of them renews and releases what the other gave.
//
// Requirements: L03, L08, L37, L38.
func TestGrantIsTakenRenewedAndReleasedAnywhere(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	grant := b.take(t, "machine:42:bmc", time.Minute)
	require.Equal(t, b.now(t).Add(time.Minute), grant.ExpiresAt)
	require.Equal(t, "machine:42:bmc", grant.Key)
	require.Equal(t, time.Minute, b.requireTaken(t, "machine:42:bmc"))
	b.take(t, "machine:43:bmc", time.Minute)

	b.advance(t, 45*time.Second)
	require.Equal(t, 15*time.Second, b.requireTaken(t, "machine:42:bmc"))
	renewed, err := b.two.Renew(t.Context(), org, grant.Key, grant.Token, 2*time.Minute)
	require.NoError(t, err)
	require.Equal(t, locking.Grant{Key: grant.Key, Token: grant.Token, Fence: grant.Fence, ExpiresAt: b.now(t).Add(2 * time.Minute)}, renewed)
	require.Equal(t, 2*time.Minute, b.requireTaken(t, "machine:42:bmc"))

	require.NoError(t, b.two.Release(t.Context(), org, grant.Key, grant.Token))
	next := b.take(t, "machine:42:bmc", time.Minute)
	require.Greater(t, next.Fence, grant.Fence)
	require.NotEqual(t, grant.Token, next.Token)
}

// A stale holder, or one whose token is another one, renews nothing and frees nothing.
//
// Requirements: L05, L08, L09. Cases: LE-01.
func TestGrantComparesTheToken(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	stale := b.take(t, "key", 10*time.Second)
	b.advance(t, 11*time.Second)
	_, err := b.one.Renew(t.Context(), org, "key", stale.Token, time.Minute)
	require.Equal(t, locking.ErrNotOwner, err, "a lock that ran out is lost, although nobody took it")

	fresh, _, err := b.two.Acquire(t.Context(), org, "key", time.Hour)
	require.NoError(t, err)
	require.Greater(t, fresh.Fence, stale.Fence)
	for name, token := range map[string]string{
		"stale": stale.Token, "changed": strings.ToUpper(fresh.Token), "a part": fresh.Token[1:], "a NUL": "\x00", "no UTF-8": "\xff",
	} {
		_, err := b.one.Renew(t.Context(), org, "key", token, time.Minute)
		require.Equal(t, locking.ErrNotOwner, err, name)
		require.Equal(t, locking.ErrNotOwner, b.one.Release(t.Context(), org, "key", token), name)
	}
	require.Equal(t, time.Hour, b.requireTaken(t, "key"), "nothing was changed")
	require.NoError(t, b.two.Release(t.Context(), org, "key", fresh.Token))
	require.Equal(t, locking.ErrNotOwner, b.two.Release(t.Context(), org, "key", fresh.Token), "it was released")
	_, err = b.one.Renew(t.Context(), org, "never", fresh.Token, time.Minute)
	require.Equal(t, locking.ErrNotOwner, err)
}

// The database's clock says when a lock is over, and at its deadline it is. The process's own clock is years away here.
//
// Requirements: L13, L37. Cases: LE-09.
func TestGrantEndsByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	for _, ttl := range []time.Duration{time.Millisecond, time.Minute, 3 * time.Hour, 24 * time.Hour, locking.MaxTTL} {
		grant := b.take(t, "key", ttl)
		b.advance(t, ttl-time.Microsecond)
		require.Equal(t, time.Microsecond, b.requireTaken(t, "key"))
		b.advance(t, time.Microsecond)
		require.Equal(t, locking.ErrNotOwner, b.one.Release(t.Context(), org, "key", grant.Token))
		_, err := b.one.Renew(t.Context(), org, "key", grant.Token, ttl)
		require.Equal(t, locking.ErrNotOwner, err)
		next := b.take(t, "key", time.Minute)
		require.NoError(t, b.one.Release(t.Context(), org, "key", next.Token))
	}
	b.take(t, "stepped back", time.Minute)
	b.advance(t, -time.Hour)
	require.Equal(t, 61*time.Minute, b.requireTaken(t, "stepped back"), "a clock set back keeps it longer, and gives it to nobody else")
}

// Organizations use the same names without meeting, and cannot touch each other's locks.
//
// Requirements: L37.
func TestGrantsOfOrganizationsAreApart(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	mine := b.take(t, "key", time.Minute)
	theirs, _, err := b.one.Acquire(t.Context(), otherOrg, "key", time.Minute)
	require.NoError(t, err)
	require.NotNil(t, theirs)

	_, err = b.one.Renew(t.Context(), otherOrg, "key", mine.Token, time.Minute)
	require.Equal(t, locking.ErrNotOwner, err)
	require.Equal(t, locking.ErrNotOwner, b.one.Release(t.Context(), otherOrg, "key", mine.Token))
	require.NoError(t, b.one.Release(t.Context(), org, "key", mine.Token))
	_, err = b.one.Renew(t.Context(), otherOrg, "key", theirs.Token, time.Minute)
	require.NoError(t, err)
}

// A database that is away is an error of its own, for every operation: never "somebody has it", never "not yours".
//
// Requirements: L02, L04, L37.
func TestDatabaseAwayIsNotContention(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	grant := b.take(t, "key", time.Minute)
	broken := locking.NewGrants(NewLocks(awayPool(t)))
	got, _, err := broken.Acquire(t.Context(), org, "key", time.Minute)
	require.Nil(t, got)
	require.ErrorIs(t, err, locking.ErrBackend)
	_, err = broken.Renew(t.Context(), org, "key", grant.Token, time.Minute)
	require.ErrorIs(t, err, locking.ErrBackend)
	require.NotErrorIs(t, err, locking.ErrNotOwner)
	err = broken.Release(t.Context(), org, "key", grant.Token)
	require.ErrorIs(t, err, locking.ErrBackend)
	require.NotErrorIs(t, err, locking.ErrNotOwner)
}

// Bad input is refused naming the field, and nothing is changed.
//
// Requirements: L37.
func TestGrantArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	for name, tt := range map[string]struct {
		key, token string
		ttl        time.Duration
		field      string
	}{
		"no key":          {"", "t", time.Minute, "key"},
		"a long key":      {strings.Repeat("x", 256), "t", time.Minute, "key"},
		"a control":       {"a\tb", "t", time.Minute, "key"},
		"no time":         {"key", "t", 0, "ttl_ms"},
		"a negative time": {"key", "t", -1, "ttl_ms"},
		"a broken time":   {"key", "t", time.Millisecond + 1, "ttl_ms"},
		"no token":        {"key", "", time.Minute, "token"},
	} {
		var invalid *locking.InvalidError
		_, err := b.one.Renew(t.Context(), org, tt.key, tt.token, tt.ttl)
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, tt.field, invalid.Field, name)
		if tt.field != "token" {
			_, _, err = b.one.Acquire(t.Context(), org, tt.key, tt.ttl)
			require.ErrorAs(t, err, &invalid, name)
		}
		if tt.field != "ttl_ms" {
			require.ErrorAs(t, b.one.Release(t.Context(), org, tt.key, tt.token), &invalid, name)
		}
	}
	require.Zero(t, read[int](t, b.pool, `SELECT count(*) FROM locks`))
	b.take(t, strings.Repeat("x", 255), time.Minute)
	b.take(t, "Höhe 17 · \"rack\"", time.Minute)
}

// Milliseconds of a request are bounded before they could overflow.
//
// Requirements: L37.
func TestTTLOfARequest(t *testing.T) {
	t.Parallel()
	for _, wrong := range []int64{0, -1, -1 << 63, 1<<63 - 1, 9_223_372_036_855, locking.MaxTTL.Milliseconds() + 1} {
		_, err := locking.TTL(wrong)
		var invalid *locking.InvalidError
		require.ErrorAs(t, err, &invalid, wrong)
		require.Equal(t, "ttl_ms", invalid.Field)
	}
	ttl, err := locking.TTL(1500)
	require.NoError(t, err)
	require.Equal(t, 1500*time.Millisecond, ttl)
}

// Dead locks are kept for a day, because their fences are, and purged afterwards; live ones never.
//
// Requirements: L37.
func TestDeadLocksArePurged(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	released := b.take(t, "released", locking.MaxTTL)
	require.NoError(t, b.one.Release(t.Context(), org, "released", released.Token))
	b.take(t, "lapsed", time.Minute)
	b.take(t, "live", locking.MaxTTL)
	purge := func(most int) int64 {
		purged, err := b.store.purge(t.Context(), most)
		require.NoError(t, err)
		return purged
	}
	b.advance(t, 24*time.Hour)
	require.Zero(t, purge(10), "not older than a day")
	b.advance(t, 2*time.Minute)
	require.EqualValues(t, 1, purge(1))
	require.EqualValues(t, 1, purge(10))
	require.Zero(t, purge(10))
	b.requireTaken(t, "live")
	require.Greater(t, b.take(t, "released", time.Minute).Fence, released.Fence)
}

// Raw SQL cannot make a fence smaller, and a lock that a person breaks by hand is free.
//
// Requirements: L37.
func TestLocksTableKeepsItsRules(t *testing.T) {
	t.Parallel()
	b := setupLocks(t)
	grant := b.take(t, "key", time.Hour)
	for rule, sql := range map[string]string{
		"locks_fence_grows":                   `UPDATE locks SET fence = fence - 1`,
		"locks_key_has_1_to_255_bytes":        `UPDATE locks SET key = ''`,
		"locks_key_has_no_control_characters": `UPDATE locks SET key = E'a\nb'`,
		"locks_token_has_at_most_64_kib":      `UPDATE locks SET token = repeat('x', 65537)::bytea`,
		"locks_live_has_a_token":              `UPDATE locks SET token = ''`,
		"locks_fence_is_positive":             `INSERT INTO locks (organization_id, key, token, fence, expires_at) VALUES ('acme', 'k', 't', 0, now())`,
	} {
		_, err := b.pool.Exec(t.Context(), sql)
		require.Equal(t, rule, constraintOf(err))
	}
	execute(t, b.pool, `UPDATE locks SET token = '', expires_at = '-infinity' WHERE key = 'key'`)
	require.Greater(t, b.take(t, "key", time.Minute).Fence, grant.Fence)
}
