package postgres_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/events"
	"allocator/identity"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

var clockNow = time.Now

// handClock is moved by hand, so that no test waits for a cache to age.
type handClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// keysOf gives a service with an organization to make keys for.
func keysOf(t *testing.T, now func() time.Time) (*identity.Keys, *pgxpool.Pool) {
	t.Helper()
	pool := postgrestest.New(t)
	createOrganization(t, pool, "demo")
	return identity.NewKeys(postgres.NewKeys(pool), now), pool
}

func shopKey() identity.NewKey {
	return identity.NewKey{Name: "shop", Scopes: []identity.Scope{identity.ScopeCheckout, identity.ScopeSupport}}
}

func requireRefusal(t *testing.T, err error, want identity.Refusal) {
	t.Helper()
	var refused *identity.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, want, refused.Refusal)
}

func TestKeyIsMadeShownAndAccepted(t *testing.T) {
	t.Parallel()
	keys, pool := keysOf(t, clockNow)
	in := shopKey()
	in.ExpiresAt = new(time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC())

	key, text, err := keys.Create(t.Context(), person("demo"), in)
	require.NoError(t, err)
	require.Regexp(t, `^key_[0-9a-f]{32}$`, string(key.ID))
	require.False(t, key.CreatedAt.IsZero())
	require.Equal(t, identity.Key{
		ID: key.ID, Organization: "demo", Name: "shop",
		Scopes:    identity.NewScopeSet(identity.ScopeCheckout, identity.ScopeSupport),
		CreatedAt: key.CreatedAt, CreatedBy: identity.Actor{Kind: identity.ActorPerson, ID: "ada"}, ExpiresAt: in.ExpiresAt,
	}, key)
	read, err := keys.Get(t.Context(), person("demo"), key.ID)
	require.NoError(t, err)
	require.Equal(t, key, read)

	caller, err := keys.Authenticate(t.Context(), text)
	require.NoError(t, err)
	require.Equal(t, identity.Caller{
		Organization: "demo", KeyID: key.ID, Scopes: key.Scopes,
		Actor: identity.Actor{Kind: identity.ActorKey, ID: string(key.ID)},
	}, caller)

	trail := auditOf(t, pool, "demo")
	require.Equal(t, []string{events.ActionOrganizationCreated, events.ActionKeyCreated}, actions(trail))
	require.Equal(t, string(key.ID), trail[1].Subject)
	require.Equal(t, map[string]string{"name": "shop", "scopes": "checkout, support"}, trail[1].Detail)

	var leaks int
	secret := text[len(text)-64:]
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM api_keys AS k WHERE k::text LIKE '%' || $1 || '%')
			+ (SELECT count(*) FROM audit AS a WHERE a::text LIKE '%' || $1 || '%')`, secret).Scan(&leaks))
	require.Zero(t, leaks, "the secret is stored nowhere")
}

// Faults: F-A4.
func TestRevokedKeyIsRefusedWithinFiveSecondsByAnotherProcess(t *testing.T) {
	t.Parallel()
	clock := &handClock{at: time.Now()}
	keys, pool := keysOf(t, clock.now)
	other := identity.NewKeys(postgres.NewKeys(pool), clock.now)
	key, text, err := keys.Create(t.Context(), person("demo"), shopKey())
	require.NoError(t, err)
	_, err = other.Authenticate(t.Context(), text)
	require.NoError(t, err)

	revoked, err := keys.Revoke(t.Context(), person("demo"), key.ID)
	require.NoError(t, err)
	require.NotNil(t, revoked.RevokedAt)
	require.Equal(t, &identity.Actor{Kind: identity.ActorPerson, ID: "ada"}, revoked.RevokedBy)
	_, err = keys.Authenticate(t.Context(), text)
	requireRefusal(t, err, identity.RefusalRevoked)

	since := clock.now()
	for err = nil; err == nil; {
		clock.advance(250 * time.Millisecond)
		_, err = other.Authenticate(t.Context(), text)
	}
	requireRefusal(t, err, identity.RefusalRevoked)
	require.LessOrEqual(t, clock.now().Sub(since), 5*time.Second)

	again, err := keys.Revoke(t.Context(), person("demo"), key.ID)
	require.NoError(t, err)
	require.Equal(t, revoked, again, "revoking again changes nothing")
	require.Equal(t, []string{events.ActionOrganizationCreated, events.ActionKeyCreated, events.ActionKeyRevoked},
		actions(auditOf(t, pool, "demo")))
}

func TestExpiryIsJudgedByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	slow := &handClock{at: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)}
	keys, _ := keysOf(t, slow.now)
	in := shopKey()
	in.ExpiresAt = new(slow.now().Add(time.Hour))
	_, text, err := keys.Create(t.Context(), person("demo"), in)
	require.NoError(t, err, "to this process it lies ahead")
	_, err = keys.Authenticate(t.Context(), text)
	requireRefusal(t, err, identity.RefusalExpired)
}

func TestDatabaseAwayIsNoStatementAboutAKey(t *testing.T) {
	t.Parallel()
	keys, pool := keysOf(t, clockNow)
	_, text, err := keys.Create(t.Context(), person("demo"), shopKey())
	require.NoError(t, err)
	pool.Close()
	_, err = keys.Authenticate(t.Context(), text)
	require.ErrorIs(t, err, identity.ErrUnavailable)
	require.NotErrorIs(t, err, identity.ErrUnauthenticated)
}

func TestKeysOfAnotherOrganizationDoNotExist(t *testing.T) {
	t.Parallel()
	keys, pool := keysOf(t, clockNow)
	createOrganization(t, pool, "other")
	key, text, err := keys.Create(t.Context(), person("demo"), shopKey())
	require.NoError(t, err)

	for name, id := range map[string]identity.KeyID{
		"another organization's": key.ID,
		"unknown":                "key_00000000000000000000000000000000",
		"malformed":              "key_\x00",
		"in capitals":            identity.KeyID("KEY_" + string(key.ID[4:])),
	} {
		_, err := keys.Get(t.Context(), person("other"), id)
		require.ErrorIs(t, err, identity.ErrKeyNotFound, name)
		_, err = keys.Revoke(t.Context(), person("other"), id)
		require.ErrorIs(t, err, identity.ErrKeyNotFound, name)
	}
	list, err := keys.List(t.Context(), person("other"), "", 10)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = keys.Authenticate(t.Context(), text)
	require.NoError(t, err, "nobody else could revoke it")

	_, _, err = keys.Create(t.Context(), person("nobody"), shopKey())
	require.ErrorIs(t, err, identity.ErrOrganizationNotFound)
}

func TestKeysAreListedOldestFirst(t *testing.T) {
	t.Parallel()
	keys, _ := keysOf(t, clockNow)
	var made, listed []identity.KeyID
	for range 5 {
		key, _, err := keys.Create(t.Context(), person("demo"), shopKey())
		require.NoError(t, err)
		made = append(made, key.ID)
	}
	for after := identity.KeyID(""); len(listed) < len(made); after = listed[len(listed)-1] {
		page, err := keys.List(t.Context(), person("demo"), after, 2)
		require.NoError(t, err)
		require.NotEmpty(t, page)
		for _, key := range page {
			listed = append(listed, key.ID)
		}
	}
	require.Equal(t, made, listed)
	require.True(t, slices.IsSorted(listed))
	_, err := keys.List(t.Context(), person("demo"), "key_x", 2)
	require.ErrorIs(t, err, identity.ErrKeyNotFound)
}

func TestLastUseIsWrittenAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	clock := &handClock{at: time.Now()}
	keys, pool := keysOf(t, clock.now)
	key, text, err := keys.Create(t.Context(), person("demo"), shopKey())
	require.NoError(t, err)
	use := func() *time.Time {
		clock.advance(5 * time.Second) // beyond the cache
		_, err := keys.Authenticate(t.Context(), text)
		require.NoError(t, err)
		require.NoError(t, keys.FlushUses(t.Context()))
		read, err := keys.Get(t.Context(), person("demo"), key.ID)
		require.NoError(t, err)
		return read.LastUsedAt
	}

	first := use()
	require.NotNil(t, first)
	require.Equal(t, first, use())
	require.NoError(t, postgres.NewKeys(pool).TouchKeys(t.Context(), []identity.KeyID{key.ID, "key_x"}))
	require.Equal(t, first, use(), "not even for another process that has not seen it yet")

	_, err = pool.Exec(t.Context(), `UPDATE api_keys SET last_used_at = last_used_at - interval '61 seconds'`)
	require.NoError(t, err)
	later := use()
	require.False(t, later.Before(*first))
}
