package locking

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Grant is a lock of another program than this service: provisioning that must be alone on a machine's management
// controller, a billing run. Any process of the service can renew and release it, since it is kept in the database.
type Grant struct {
	Key   string
	Token string // proves the holder; renew and release compare it
	// Fence grows with every grant of the key and with nothing else. A paused holder does not know that its time is over:
	// whatever is written under the lock should carry the fence, and the reader refuse a smaller one than it has seen.
	Fence     int64
	ExpiresAt time.Time // UTC, by the clock of the store; from this instant on the lock is free
}

// Asked is a store's answer to somebody who wants a lock.
type Asked struct {
	Granted   bool
	Fence     int64         // if granted
	ExpiresAt time.Time     // if granted
	Left      time.Duration // if not: what the holder has left, as far as that is known
}

// GrantStore keeps grants, those of an organization apart from those of others. Deadlines are judged by its own clock.
// Keys, tokens and times have been checked. Its errors match ErrBackend when the store is broken.
type GrantStore interface {
	// Acquire grants the lock if it is free.
	Acquire(ctx context.Context, organizationID, key, token string, ttl time.Duration) (Asked, error)
	// Renew gives a live grant the time ttl, counted from now, or returns ErrNotOwner.
	Renew(ctx context.Context, organizationID, key, token string, ttl time.Duration) (Grant, error)
	// Release ends a live grant, or returns ErrNotOwner.
	Release(ctx context.Context, organizationID, key, token string) error
}

// Grants is what doors offer to other programs. Unlike a Locker it tells a holder whether its lock is lost or the store
// is broken: the caller is another program, which is told 409 or 503 and has to stop either way.
type Grants struct{ store GrantStore }

// NewGrants makes the service over a store.
func NewGrants(store GrantStore) *Grants { return &Grants{store: store} }

// Acquire takes the lock on the key for the organization. It returns nil if somebody else has it, with the time after
// which asking again may help. Errors: *InvalidError, or one that matches ErrBackend.
func (g *Grants) Acquire(ctx context.Context, organizationID, key string, ttl time.Duration) (*Grant, time.Duration, error) {
	if err := checkLock(key, ttl); err != nil {
		return nil, 0, err
	}
	token := uuid.NewString()
	asked, err := g.store.Acquire(ctx, organizationID, key, token, ttl)
	if err != nil || !asked.Granted {
		return nil, asked.Left, err
	}
	return &Grant{Key: key, Token: token, Fence: asked.Fence, ExpiresAt: asked.ExpiresAt}, 0, nil
}

// Renew gives the lock the time ttl, counted from now, which may shorten it. Errors: ErrNotOwner for a lock that ran
// out, was released or is somebody else's; *InvalidError; or one that matches ErrBackend.
func (g *Grants) Renew(ctx context.Context, organizationID, key, token string, ttl time.Duration) (Grant, error) {
	if err := checkLock(key, ttl); err != nil {
		return Grant{}, err
	}
	if err := checkToken(token); err != nil {
		return Grant{}, err
	}
	return g.store.Renew(ctx, organizationID, key, token, ttl)
}

// Release gives the lock back. Errors are those of Renew.
func (g *Grants) Release(ctx context.Context, organizationID, key, token string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := checkToken(token); err != nil {
		return err
	}
	return g.store.Release(ctx, organizationID, key, token)
}

// TTL is the time that a request gives in milliseconds. It refuses what a lock cannot have before a multiplication
// could overflow.
func TTL(milliseconds int64) (time.Duration, error) {
	if milliseconds < 1 || milliseconds > MaxTTL.Milliseconds() {
		return 0, checkTTL(0)
	}
	return time.Duration(milliseconds) * time.Millisecond, nil
}

// checkToken refuses a missing token only: any other one that was never given out is simply not the holder's.
func checkToken(token string) error {
	if token == "" {
		return &InvalidError{"token", "must be the one that the lock was granted with"}
	}
	return nil
}
