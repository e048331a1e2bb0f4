package identity

import (
	"context"
	"fmt"
	"time"
)

// KeyStore keeps API keys. Create and revoke leave an entry by the caller in the audit trail of the key's
// organization, in the same transaction.
type KeyStore interface {
	// CreateKey stores a key and gives it its id, or answers ErrOrganizationNotFound.
	CreateKey(ctx context.Context, by Caller, key Key, hash SecretHash) (Key, error)
	// Key reads one key of the organization, or answers ErrKeyNotFound.
	Key(ctx context.Context, org OrganizationID, id KeyID) (Key, error)
	// Keys lists at most limit keys of the organization, oldest first, beginning after the given one ("": the first).
	Keys(ctx context.Context, org OrganizationID, after KeyID, limit int) ([]Key, error)
	// RevokeKey revokes a key of the organization, or answers ErrKeyNotFound. Revoking again changes nothing.
	RevokeKey(ctx context.Context, by Caller, org OrganizationID, id KeyID) (Key, error)
	// LookUpKey reads the key whatever its organization, or answers ErrKeyNotFound. Only authentication may call it.
	LookUpKey(ctx context.Context, id KeyID) (KeyRecord, error)
	// TouchKeys sets the last use of the keys to now, of each at most once a minute.
	TouchKeys(ctx context.Context, ids []KeyID) error
}

// KeyRecord is what authentication needs of a key.
type KeyRecord struct {
	Key
	Hash SecretHash
	AsOf time.Time // the store's clock when the record was read; expiry is judged by it
}

// expired: at its expiry exactly, a key is expired.
func (r *KeyRecord) expired() bool { return r.ExpiresAt != nil && !r.AsOf.Before(*r.ExpiresAt) }

// maxKeyName is the limit of a key's name in characters.
const maxKeyName = 100

// NewKey is what Keys.Create is asked for.
type NewKey struct {
	Name      string
	Scopes    []Scope
	ExpiresAt *time.Time // nil: never
}

// Keys makes, shows and revokes API keys, and tells who a key's holder is. Safe for concurrent use.
type Keys struct {
	store KeyStore
	cache *keyCache
	uses  *keyUses
	now   func() time.Time
}

// NewKeys makes the service. The clock, time.Now but in tests, measures the age of what is cached, and nothing else
// but that a new key's expiry lies ahead. Run must be running for the last use of keys to be recorded.
func NewKeys(store KeyStore, now func() time.Time) *Keys {
	return &Keys{store: store, cache: newKeyCache(store.LookUpKey, now), uses: newKeyUses(), now: now}
}

// Create makes a key for the caller's organization. The text is what the holder sends; it is given this once and
// cannot be read again. Errors: InvalidError, ScopeError, ErrOrganizationNotFound.
func (s *Keys) Create(ctx context.Context, by Caller, in NewKey) (key Key, text string, err error) {
	if err := s.checkNewKey(in); err != nil {
		return Key{}, "", err
	}
	scopes := NewScopeSet(in.Scopes...)
	if missing := by.Scopes.Missing(scopes); len(missing) > 0 {
		return Key{}, "", &ScopeError{Missing: missing}
	}

	secret := newSecret()
	key, err = s.store.CreateKey(ctx, by, Key{
		Organization: by.Organization,
		Name:         in.Name,
		Scopes:       scopes,
		CreatedBy:    by.Actor,
		ExpiresAt:    in.ExpiresAt,
	}, hashSecret(secret))
	if err != nil {
		return Key{}, "", err
	}
	return key, bearer(key.ID, secret), nil
}

func (s *Keys) checkNewKey(in NewKey) error {
	var bad faults
	bad.add(checkText("/name", in.Name, maxKeyName))
	if len(in.Scopes) == 0 {
		bad.add(&FieldError{"/scopes", CodeRequired, "must name at least one scope"})
	}
	for i, scope := range in.Scopes {
		if !scope.Valid() {
			bad.add(&FieldError{fmt.Sprintf("/scopes/%d", i), CodeUnknownValue, "must be one of " + AllScopes().String()})
		}
	}
	// The last year that RFC 3339 can write.
	if at := in.ExpiresAt; at != nil && (!at.After(s.now()) || at.Year() > 9999) {
		bad.add(&FieldError{"/expires_at", CodeOutOfRange, "must lie in the future, and before the year 10000"})
	}
	return bad.err()
}

// Get reads one key of the caller's organization. Errors: ErrKeyNotFound.
func (s *Keys) Get(ctx context.Context, by Caller, id KeyID) (Key, error) {
	return s.store.Key(ctx, by.Organization, id)
}

// List gives at most limit keys of the caller's organization, oldest first, beginning after the given one ("" for the
// first); revoked and expired keys included. An after that is no key's id at all is answered with ErrKeyNotFound.
func (s *Keys) List(ctx context.Context, by Caller, after KeyID, limit int) ([]Key, error) {
	return s.store.Keys(ctx, by.Organization, after, limit)
}

// Revoke ends a key of the caller's organization for ever: here at once, everywhere within 5 s. A caller may revoke a
// key that has more scopes than its own: whoever notices a lost key must be able to stop it. Errors: ErrKeyNotFound.
func (s *Keys) Revoke(ctx context.Context, by Caller, id KeyID) (Key, error) {
	key, err := s.store.RevokeKey(ctx, by, by.Organization, id)
	s.cache.forget(id) // after a lost answer too: it may have been done
	return key, err
}

// Authenticate tells who sends the text alk_…. Errors: a RefusedError, which is ErrUnauthenticated, if the key is not
// accepted; ErrUnavailable if that could not be found out.
func (s *Keys) Authenticate(ctx context.Context, text string) (Caller, error) {
	id, secret, ok := parseBearer(text)
	if !ok {
		return Caller{}, &RefusedError{Refusal: RefusalMalformed}
	}
	record, err := s.cache.get(ctx, id)
	if err != nil {
		return Caller{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if record == nil {
		return Caller{}, &RefusedError{Refusal: RefusalUnknown, KeyID: id}
	}
	if err := judge(record, secret); err != nil {
		return Caller{}, err
	}
	s.uses.note(record)
	return Caller{
		Organization: record.Organization,
		KeyID:        id,
		Scopes:       record.Scopes,
		Actor:        Actor{Kind: ActorKey, ID: string(id)},
	}, nil
}

// judge looks at the secret first: only its holder may leave a trace in the organization's audit trail.
func judge(record *KeyRecord, secret string) error {
	switch {
	case !record.Hash.matches(secret):
		return &RefusedError{Refusal: RefusalWrongSecret, KeyID: record.ID}
	case record.RevokedAt != nil:
		return &RefusedError{Refusal: RefusalRevoked, KeyID: record.ID, Organization: record.Organization}
	case record.expired():
		return &RefusedError{Refusal: RefusalExpired, KeyID: record.ID, Organization: record.Organization}
	}
	return nil
}
