package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allocator/locking"
	"allocator/transport/httpapi/strictjson"
	"allocator/transport/httpapi/wire"
)

// Locks keeps the locks of other programs, those of an organization apart from those of others.
type Locks interface {
	// Acquire takes one; nil if somebody else has it, with the time that they have left. Errors: locking.InvalidError,
	// ErrBackend.
	Acquire(ctx context.Context, organizationID, key string, ttl time.Duration) (*locking.Grant, time.Duration, error)
	// Renew keeps one for ttl from now. Errors: locking.InvalidError, ErrNotOwner, ErrBackend.
	Renew(ctx context.Context, organizationID, key, token string, ttl time.Duration) (locking.Grant, error)
	// Release gives one back. Errors: locking.InvalidError, ErrNotOwner, ErrBackend.
	Release(ctx context.Context, organizationID, key, token string) error
}

// AcquireLock implements wire.StrictServerInterface.
func (h *handlers) AcquireLock(ctx context.Context, r wire.AcquireLockRequestObject) (wire.AcquireLockResponseObject, error) {
	ttl, err := locking.TTL(r.Body.TTLMs)
	if err != nil {
		return nil, err
	}
	grant, left, err := h.Locks.Acquire(ctx, string(callerOf(ctx).Organization), r.Body.Key, ttl)
	switch {
	case err != nil:
		return nil, err
	case grant == nil:
		return nil, lockHeld(left)
	}
	return wire.AcquireLock201JSONResponse(viewGrant(*grant, ttl)), nil
}

// RenewLock implements wire.StrictServerInterface.
func (h *handlers) RenewLock(ctx context.Context, r wire.RenewLockRequestObject) (wire.RenewLockResponseObject, error) {
	ttl, err := locking.TTL(r.Body.TTLMs)
	if err != nil {
		return nil, err
	}
	grant, err := h.Locks.Renew(ctx, string(callerOf(ctx).Organization), r.Body.Key, r.Body.Token, ttl)
	if err != nil {
		return nil, err
	}
	return wire.RenewLock200JSONResponse(viewGrant(grant, ttl)), nil
}

// ReleaseLock implements wire.StrictServerInterface. The key stands in the query, since keys have slashes; the token in
// a header, since addresses are logged.
func (h *handlers) ReleaseLock(ctx context.Context, r wire.ReleaseLockRequestObject) (wire.ReleaseLockResponseObject, error) {
	err := h.Locks.Release(ctx, string(callerOf(ctx).Organization), r.Params.Key, r.Params.LockToken)
	if wrong, is := errors.AsType[*locking.InvalidError](err); is {
		pointer := "query:key"
		if wrong.Field != "key" {
			pointer = "header:Lock-Token"
		}
		return nil, invalid(strictjson.Fault{Pointer: pointer, Code: strictjson.CodeMalformed, Detail: sentence(wrong.Reason)})
	}
	return wire.ReleaseLock204Response{}, err
}

// lockHeld is the answer to whoever asks for a lock that somebody has. They may release it at any moment, so the caller
// is not told to wait until its time is over.
func lockHeld(left time.Duration) *problem {
	p := newProblem("lock_held")
	if left > 0 {
		p.detail = fmt.Sprintf("Somebody else has the lock for another %s unless they renew or release it. %s", left.Round(time.Millisecond), p.sentence)
		p.fill = func(body *wire.Problem) { body.SecondsLeft = int64(left / time.Second) }
	}
	return p.retryShortly()
}

func viewGrant(g locking.Grant, ttl time.Duration) wire.Lock {
	return wire.Lock{
		Key: g.Key, Token: g.Token, Fence: g.Fence, ExpiresAt: g.ExpiresAt.UTC(), SecondsLeft: int64(ttl / time.Second),
		Text: fmt.Sprintf("You have the lock for %s. Renew it when a third of that has passed, and stop what you do under it when a renewal fails.", ttl),
	}
}
