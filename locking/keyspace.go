package locking

import (
	"context"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"
)

// MaxTokenBytes is the longest token that a program may choose for its lock.
const MaxTokenBytes = 64 << 10

// Digest is the XXH3 hash of a token, which stands for a long one in a comparison. It proves nothing to anybody who wants
// to deceive: everybody can compute it, and make two texts that share one.
func Digest(token string) uint64 { return xxh3.HashString(token) }

// Match is what a change of a lock asks of its present token. Nil fields ask for nothing; the zero Match fits any lock.
type Match struct {
	Token, NotToken   *string
	Digest, NotDigest *uint64
}

// Until says when a lock is over: some time after now by the store's clock, or at an instant, or, with neither, when it
// would have been over anyway.
type Until struct {
	After time.Duration
	At    time.Time
}

// Keeps tells whether the time of the lock stays as it is.
func (u Until) Keeps() bool { return u.After == 0 && u.At.IsZero() }

// Presence is what a change asks about somebody having the lock already.
type Presence int8

// The presences.
const (
	Any  Presence = iota
	Free          // nobody has it
	Held          // somebody has it
)

// Put asks for a lock with a token of the caller's own choosing.
type Put struct {
	Key, Token string
	If         Presence
	Match      Match // asked of a lock that somebody has; a free one is taken unless If is Held
	Until      Until
	Before     bool // the answer is to tell who had the lock before
}

// Placed is the answer to a Put.
type Placed struct {
	Done   bool
	Before *string // if it was asked for: the token of a lock that somebody had, whether it was changed or not
}

// Entry is a lock that somebody has.
type Entry struct {
	Token string
	Left  time.Duration
}

// Later narrows a change of the time that is left.
type Later int8

// The ways of narrowing it.
const (
	Whatever Later = iota
	OnlyLater
	OnlyEarlier
)

// KeyStore keeps the same locks as a GrantStore, for programs that choose their tokens themselves. Each method is one
// atomic step; a lock whose time is over by the store's own clock is as none. Errors match ErrBackend when the store is
// broken.
type KeyStore interface {
	// Put takes, takes over or renews the lock, as put says.
	Put(ctx context.Context, organizationID string, put Put) (Placed, error)
	// Look returns nil if nobody has the lock.
	Look(ctx context.Context, organizationID, key string) (*Entry, error)
	// Count tells how many of the locks somebody has; one that is named twice counts twice.
	Count(ctx context.Context, organizationID string, keys []string) (int64, error)
	// Prolong changes what is left to any holder, and returns whether there was a lock to change.
	Prolong(ctx context.Context, organizationID, key string, until Until, later Later) (bool, error)
	// Remove ends the lock if its token matches, and returns whether it did.
	Remove(ctx context.Context, organizationID, key string, match Match) (bool, error)
	// Break ends locks whoever has them, and returns how many there were.
	Break(ctx context.Context, organizationID string, keys []string) (int64, error)
}

// Keyspace is what a door for clients of Redis offers to other programs: the locks of Grants under the same keys.
// Errors: *InvalidError, or one that matches ErrBackend. Safe for concurrent use.
type Keyspace struct{ store KeyStore }

// NewKeyspace makes the service over a store.
func NewKeyspace(store KeyStore) *Keyspace { return &Keyspace{store: store} }

// Put takes, takes over or renews the lock, as put says.
func (k *Keyspace) Put(ctx context.Context, organizationID string, put Put) (Placed, error) {
	if err := checkPut(put); err != nil {
		return Placed{}, err
	}
	return k.store.Put(ctx, organizationID, put)
}

func checkPut(put Put) error {
	if err := checkKey(put.Key); err != nil {
		return err
	}
	switch {
	case put.Token == "":
		return &InvalidError{"token", "must not be empty: it is how the holder is known"}
	case len(put.Token) > MaxTokenBytes:
		return &InvalidError{"token", fmt.Sprintf("must have at most %d bytes", MaxTokenBytes)}
	case put.Until.Keeps() && put.If != Held:
		return &InvalidError{"ttl_ms", "must be given: a lock without one would stay for ever if its holder died"}
	case put.Until.Keeps():
		return nil
	}
	return checkUntil(put.Until)
}

// checkUntil holds an instant against this process's clock: that bounds what can be asked for, and decides about no
// lock. An instant that has passed is none of its business, since a lock may be given up that way.
func checkUntil(until Until) error {
	if until.At.IsZero() {
		return checkTTL(until.After)
	}
	if time.Until(until.At) > MaxTTL {
		return checkTTL(MaxTTL + 1)
	}
	return nil
}

// Look tells who has the lock, or returns nil.
func (k *Keyspace) Look(ctx context.Context, organizationID, key string) (*Entry, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return k.store.Look(ctx, organizationID, key)
}

// Count tells how many of the locks somebody has; one that is named twice counts twice.
func (k *Keyspace) Count(ctx context.Context, organizationID string, keys []string) (int64, error) {
	if err := checkKeys(keys); err != nil {
		return 0, err
	}
	return k.store.Count(ctx, organizationID, keys)
}

// Prolong changes what is left to whoever has the lock, and does not ask for the token.
func (k *Keyspace) Prolong(ctx context.Context, organizationID, key string, until Until, later Later) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	if err := checkUntil(until); err != nil {
		return false, err
	}
	return k.store.Prolong(ctx, organizationID, key, until, later)
}

// Remove ends the lock if its token matches.
func (k *Keyspace) Remove(ctx context.Context, organizationID, key string, match Match) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	return k.store.Remove(ctx, organizationID, key, match)
}

// Break ends locks whoever has them. It is for people who may.
func (k *Keyspace) Break(ctx context.Context, organizationID string, keys []string) (int64, error) {
	if err := checkKeys(keys); err != nil {
		return 0, err
	}
	return k.store.Break(ctx, organizationID, keys)
}

func checkKeys(keys []string) error {
	for _, key := range keys {
		if err := checkKey(key); err != nil {
			return err
		}
	}
	return nil
}
