package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// keysFake keeps keys in memory. Its own clock is the service's.
type keysFake struct {
	clock *clock

	mu      sync.Mutex
	records map[KeyID]KeyRecord
	lookUps int
	touched [][]KeyID
	down    error
	gate    chan struct{} // if set, look-ups wait until it is closed
}

func newKeysFake(clock *clock) *keysFake {
	return &keysFake{clock: clock, records: map[KeyID]KeyRecord{}}
}

func (f *keysFake) CreateKey(_ context.Context, _ Caller, key Key, hash SecretHash) (Key, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key.ID = KeyID(fmt.Sprintf("key_%032x", len(f.records)+1))
	key.CreatedAt = f.clock.now()
	f.records[key.ID] = KeyRecord{Key: key, Hash: hash}
	return key, nil
}

func (f *keysFake) RevokeKey(_ context.Context, by Caller, org OrganizationID, id KeyID) (Key, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	record, ok := f.records[id]
	if !ok || record.Organization != org {
		return Key{}, ErrKeyNotFound
	}
	now := f.clock.now()
	record.RevokedAt, record.RevokedBy = &now, &by.Actor
	f.records[id] = record
	return record.Key, nil
}

func (f *keysFake) LookUpKey(ctx context.Context, id KeyID) (KeyRecord, error) {
	f.mu.Lock()
	f.lookUps++
	record, ok := f.records[id]
	record.AsOf = f.clock.now()
	down, gate := f.down, f.gate
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return KeyRecord{}, ctx.Err()
		}
	}
	switch {
	case down != nil:
		return KeyRecord{}, down
	case !ok:
		return KeyRecord{}, ErrKeyNotFound
	}
	return record, nil
}

func (f *keysFake) TouchKeys(_ context.Context, ids []KeyID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched = append(f.touched, ids)
	return f.down
}

func (f *keysFake) Key(context.Context, OrganizationID, KeyID) (Key, error) {
	return Key{}, ErrKeyNotFound
}

func (f *keysFake) Keys(context.Context, OrganizationID, KeyID, int) ([]Key, error) {
	return nil, nil
}

func (f *keysFake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lookUps
}

func (f *keysFake) set(change func(*keysFake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

var admin = LocalCaller("demo", Actor{Kind: ActorPerson, ID: "ada"})

// setup gives a service over a fake and one key of it.
func setup(t *testing.T, in NewKey) (keys *Keys, store *keysFake, clock *clock, key Key, text string) {
	t.Helper()
	clock = newClock()
	store = newKeysFake(clock)
	keys = NewKeys(store, clock.now)
	key, text, err := keys.Create(t.Context(), admin, in)
	require.NoError(t, err)
	return keys, store, clock, key, text
}

func checkoutKey() NewKey { return NewKey{Name: "shop", Scopes: []Scope{ScopeCheckout}} }

func requireRefusal(t *testing.T, err error, want Refusal) {
	t.Helper()
	require.Equal(t, want, refusalOf(t, err).Refusal)
}

func refusalOf(t *testing.T, err error) *RefusedError {
	t.Helper()
	require.ErrorIs(t, err, ErrUnauthenticated)
	require.NotErrorIs(t, err, ErrUnavailable)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	return refused
}

func TestAuthenticateTellsWhoCalls(t *testing.T) {
	t.Parallel()
	keys, store, _, key, text := setup(t, NewKey{Name: "shop", Scopes: []Scope{ScopeOrders, ScopeSupport}})

	caller, err := keys.Authenticate(t.Context(), text)
	require.NoError(t, err)
	require.Equal(t, Caller{
		Organization: "demo",
		KeyID:        key.ID,
		Scopes:       NewScopeSet(ScopeOrders, ScopeSupport),
		Actor:        Actor{Kind: ActorKey, ID: string(key.ID)},
	}, caller)

	require.Regexp(t, `^alk_[0-9a-f]{32}_[0-9a-f]{64}$`, text, "64 hexadecimal digits are 256 bits")
	_, secret, _ := parseBearer(text)
	require.Equal(t, hashSecret(secret), store.records[key.ID].Hash)
	_, other, err := keys.Create(t.Context(), admin, checkoutKey())
	require.NoError(t, err)
	require.NotContains(t, other, secret)
}

func TestAuthenticateRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text func(text string) string
		want Refusal
	}{
		"nothing":                          {func(string) string { return "" }, RefusalMalformed},
		"the scheme left on":               {func(s string) string { return "Bearer " + s }, RefusalMalformed},
		"a space after it":                 {func(s string) string { return s + " " }, RefusalMalformed},
		"a line break after it":            {func(s string) string { return s + "\n" }, RefusalMalformed},
		"capitals":                         {strings.ToUpper, RefusalMalformed},
		"a cut secret":                     {func(s string) string { return s[:len(s)-1] }, RefusalMalformed},
		"a key that does not exist":        {func(s string) string { return "alk_" + strings.Repeat("0", 32) + s[36:] }, RefusalUnknown},
		"another secret":                   {func(s string) string { return s[:37] + strings.Repeat("0", 64) }, RefusalWrongSecret},
		"a secret that differs at its end": {func(s string) string { return s[:len(s)-1] + flip(s[len(s)-1]) }, RefusalWrongSecret},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, _, _, _, text := setup(t, checkoutKey())
			_, err := keys.Authenticate(t.Context(), test.text(text))
			refused := refusalOf(t, err)
			require.Equal(t, test.want, refused.Refusal)
			require.Empty(t, refused.Organization, "a stranger must not reach an organization's audit trail")
		})
	}
}

func flip(digit byte) string {
	if digit == '0' {
		return "1"
	}
	return "0"
}

func TestRevokedKeyIsRefused(t *testing.T) {
	t.Parallel()

	t.Run("at once by the process that revoked it", func(t *testing.T) {
		t.Parallel()
		keys, _, _, key, text := setup(t, checkoutKey())
		_, err := keys.Authenticate(t.Context(), text)
		require.NoError(t, err)
		_, err = keys.Revoke(t.Context(), admin, key.ID)
		require.NoError(t, err)
		_, err = keys.Authenticate(t.Context(), text)
		refused := refusalOf(t, err)
		require.Equal(t, RefusalRevoked, refused.Refusal)
		require.Equal(t, OrganizationID("demo"), refused.Organization)
	})

	t.Run("within five seconds by another process, asked without a pause", func(t *testing.T) {
		t.Parallel()
		keys, store, clock, key, text := setup(t, checkoutKey())
		other := NewKeys(store, clock.now)
		_, err := other.Authenticate(t.Context(), text)
		require.NoError(t, err)
		_, err = keys.Revoke(t.Context(), admin, key.ID)
		require.NoError(t, err)
		revoked := clock.now()
		for err == nil {
			clock.advance(100 * time.Millisecond)
			_, err = other.Authenticate(t.Context(), text)
		}
		requireRefusal(t, err, RefusalRevoked)
		require.LessOrEqual(t, clock.now().Sub(revoked), 5*time.Second)
	})

	t.Run("even if a reading was under way meanwhile", func(t *testing.T) {
		t.Parallel()
		keys, store, _, key, text := setup(t, checkoutKey())
		gate := make(chan struct{})
		store.set(func(f *keysFake) { f.gate = gate })
		early := authenticating(t, keys, text)
		require.Eventually(t, func() bool { return store.count() == 1 }, 10*time.Second, time.Millisecond)
		_, err := keys.Revoke(t.Context(), admin, key.ID)
		require.NoError(t, err)
		store.set(func(f *keysFake) { f.gate = nil })
		_, err = keys.Authenticate(t.Context(), text)
		requireRefusal(t, err, RefusalRevoked)

		close(gate) // the old reading ends last, and must not be kept
		require.NoError(t, <-early)
		_, err = keys.Authenticate(t.Context(), text)
		requireRefusal(t, err, RefusalRevoked)
	})
}

// authenticating authenticates beside the test and sends the error.
func authenticating(t *testing.T, keys *Keys, text string) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		_, err := keys.Authenticate(t.Context(), text)
		result <- err
	}()
	return result
}

func TestExpiredKeyIsRefusedFromItsInstantOn(t *testing.T) {
	t.Parallel()
	expiry := newClock().at.Add(2 * time.Second)
	keys, store, clock, _, text := setup(t, NewKey{Name: "shop", Scopes: []Scope{ScopeCheckout}, ExpiresAt: &expiry})

	_, err := keys.Authenticate(t.Context(), text)
	require.NoError(t, err)
	clock.advance(2*time.Second - time.Microsecond)
	_, err = keys.Authenticate(t.Context(), text)
	require.NoError(t, err)
	require.Equal(t, 1, store.count(), "until then the cached answer serves")

	clock.advance(time.Microsecond)
	_, err = keys.Authenticate(t.Context(), text)
	refused := refusalOf(t, err)
	require.Equal(t, RefusalExpired, refused.Refusal)
	require.Equal(t, OrganizationID("demo"), refused.Organization)
}

func TestStoreFailureIsNeverAStatementAboutTheKey(t *testing.T) {
	t.Parallel()
	keys, store, clock, _, text := setup(t, checkoutKey())
	broken := errors.New("connection refused")
	store.set(func(f *keysFake) { f.down = broken })

	_, err := keys.Authenticate(t.Context(), text)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, ErrUnauthenticated)

	store.set(func(f *keysFake) { f.down = nil })
	_, err = keys.Authenticate(t.Context(), text)
	require.NoError(t, err, "a failure is not remembered")

	store.set(func(f *keysFake) { f.down = broken })
	_, err = keys.Authenticate(t.Context(), text)
	require.NoError(t, err, "what was known a moment ago serves")
	clock.advance(keyTTL)
	_, err = keys.Authenticate(t.Context(), text)
	require.ErrorIs(t, err, ErrUnavailable, "but not longer than a revocation may take")
}

func TestOneCallersEndDoesNotFailTheOthers(t *testing.T) {
	t.Parallel()
	keys, store, _, _, text := setup(t, checkoutKey())
	gate := make(chan struct{})
	store.set(func(f *keysFake) { f.gate = gate })

	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := keys.Authenticate(ctx, text)
		first <- err
	}()
	require.Eventually(t, func() bool { return store.count() == 1 }, 10*time.Second, time.Millisecond)
	var others []<-chan error
	for range 20 {
		others = append(others, authenticating(t, keys, text))
	}
	cancel()
	require.ErrorIs(t, <-first, ErrUnavailable)
	close(gate)
	for _, other := range others {
		require.NoError(t, <-other)
	}
	require.Equal(t, 1, store.count(), "a crowd with one key shares one reading")
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	keys, store, _, _, text := setup(t, checkoutKey())
	_, err := keys.Authenticate(t.Context(), text)
	require.NoError(t, err)

	secret := strings.Repeat("0", 64)
	for i := range maxUnknownKeys + 100 {
		_, err := keys.Authenticate(t.Context(), fmt.Sprintf("alk_%032x_%s", i+1000, secret))
		requireRefusal(t, err, RefusalUnknown)
	}
	require.Len(t, keys.cache.unknown, maxUnknownKeys)
	require.Empty(t, keys.cache.running)

	before := store.count()
	_, err = keys.Authenticate(t.Context(), text)
	require.NoError(t, err)
	require.Equal(t, before, store.count(), "unknown keys push out no known one")
}

func TestUnknownKeyIsRememberedForAMomentOnly(t *testing.T) {
	t.Parallel()
	keys, store, clock, _, _ := setup(t, checkoutKey())
	unknown := fmt.Sprintf("alk_%032x_%s", 99, strings.Repeat("0", 64))
	for range 3 {
		_, err := keys.Authenticate(t.Context(), unknown)
		requireRefusal(t, err, RefusalUnknown)
	}
	require.Equal(t, 1, store.count())
	clock.advance(keyTTL)
	_, err := keys.Authenticate(t.Context(), unknown)
	requireRefusal(t, err, RefusalUnknown)
	require.Equal(t, 2, store.count())
}

func TestCreateKeyChecksTheRequest(t *testing.T) {
	t.Parallel()
	past := newClock().at
	tests := map[string]struct {
		in     NewKey
		faults map[string]string
	}{
		"no scope": {NewKey{Name: "shop"}, map[string]string{"/scopes": CodeRequired}},
		"everything at once": {
			NewKey{Name: "a\nb", Scopes: []Scope{ScopeAdmin, "root", "Checkout"}, ExpiresAt: &past},
			map[string]string{
				"/name": CodeControlCharacter, "/scopes/1": CodeUnknownValue, "/scopes/2": CodeUnknownValue, "/expires_at": CodeOutOfRange,
			},
		},
		"an expiry that RFC 3339 cannot write": {
			NewKey{Name: "shop", Scopes: []Scope{ScopeAdmin}, ExpiresAt: new(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))},
			map[string]string{"/expires_at": CodeOutOfRange},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newClock()
			store := newKeysFake(clock)
			_, text, err := NewKeys(store, clock.now).Create(t.Context(), admin, test.in)
			require.Equal(t, test.faults, faultsOf(t, err))
			require.Empty(t, text)
			require.Empty(t, store.records)
		})
	}
}

func TestNobodyMakesAKeyWithMoreScopesThanItsOwn(t *testing.T) {
	t.Parallel()
	clock := newClock()
	store := newKeysFake(clock)
	keys := NewKeys(store, clock.now)
	before := len(store.records)
	by := Caller{Organization: "demo", Scopes: NewScopeSet(ScopeAdmin, ScopeOrders)}

	_, text, err := keys.Create(t.Context(), by, NewKey{Name: "x", Scopes: []Scope{ScopeCheckout, ScopeSupport, ScopePlatform}})
	var tooMany *ScopeError
	require.ErrorAs(t, err, &tooMany)
	require.Equal(t, []Scope{ScopeSupport, ScopePlatform}, tooMany.Missing)
	require.Empty(t, text)
	require.Len(t, store.records, before)

	_, _, err = keys.Create(t.Context(), by, NewKey{Name: "x", Scopes: []Scope{ScopeCheckout, ScopeAdmin}})
	require.NoError(t, err)
}

func TestUsesAreGatheredAndNeverFailARequest(t *testing.T) {
	t.Parallel()
	keys, store, clock, key, text := setup(t, checkoutKey())
	require.NoError(t, keys.FlushUses(t.Context()))
	require.Empty(t, store.touched, "nothing was used")

	for range 5 {
		_, err := keys.Authenticate(t.Context(), text)
		require.NoError(t, err)
	}
	require.Empty(t, store.touched, "no request writes")
	require.NoError(t, keys.FlushUses(t.Context()))
	require.Equal(t, [][]KeyID{{key.ID}}, store.touched)

	used := clock.now()
	store.set(func(f *keysFake) {
		record := f.records[key.ID]
		record.LastUsedAt = &used
		f.records[key.ID] = record
	})
	clock.advance(useEvery - time.Second)
	_, err := keys.Authenticate(t.Context(), text)
	require.NoError(t, err)
	require.NoError(t, keys.FlushUses(t.Context()))
	require.Len(t, store.touched, 1, "a use of the last minute is on record")

	clock.advance(keyTTL)
	_, err = keys.Authenticate(t.Context(), text)
	require.NoError(t, err)
	store.set(func(f *keysFake) { f.down = errors.New("connection refused") })
	require.Error(t, keys.FlushUses(t.Context()))
	_, err = keys.Authenticate(t.Context(), text)
	require.NoError(t, err)
}

func TestRunWritesTheLastUsesWhenItEnds(t *testing.T) {
	t.Parallel()
	keys, store, _, key, text := setup(t, checkoutKey())
	_, err := keys.Authenticate(t.Context(), text)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	keys.Run(ctx, slog.New(slog.DiscardHandler))
	require.Equal(t, [][]KeyID{{key.ID}}, store.touched)
}
