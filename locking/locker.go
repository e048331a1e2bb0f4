package locking

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The ways in which an operation on a lock fails. That somebody else holds a lock is none of them.
var (
	// ErrNotOwner says that the lock is no longer the caller's: whatever was done under it has to stop. Whether it ran
	// out, was taken over or cannot be reached makes no difference to a holder, so nothing more is said.
	ErrNotOwner = errors.New("this lock is not, or no longer, yours: stop what you do under it, and take it again to go on")
	// ErrBackend says that nobody can know who holds the lock, since its backend is broken: somebody has to look.
	ErrBackend = errors.New("the lock backend cannot be used")
)

// Bounds of what is locked and for how long.
const (
	MaxKeyBytes = 255
	MinTTL      = time.Millisecond
	MaxTTL      = 7 * 24 * time.Hour
)

// Locker takes locks in one backend. Its methods may be called by several goroutines at once. It is the whole of what
// calling code knows of a backend.
type Locker interface {
	// Name is the backend's word in the configuration: memory, redis or pg.
	Name() string

	// Try takes the lock on the key for the given time if nobody has it. It returns nil and no error if somebody else
	// has it; an error that matches ErrBackend if the backend is broken; an *InvalidError for a key or a time out of
	// bounds; and the context's error when that was cancelled. It never waits for a holder.
	Try(ctx context.Context, key string, ttl time.Duration) (*Handle, error)

	// Renew gives the lock its whole time again, counted from now. The only error is ErrNotOwner.
	Renew(ctx context.Context, h *Handle) error

	// Release gives the lock back. The only error is ErrNotOwner: it was not the caller's any more.
	Release(ctx context.Context, h *Handle) error

	// Cleanup lets go of what the Locker itself keeps open; it is not used afterwards.
	Cleanup(ctx context.Context) error
}

// NoCleanup is the Cleanup of a backend that keeps nothing open; such a one embeds it.
type NoCleanup struct{}

// Cleanup does nothing.
func (NoCleanup) Cleanup(context.Context) error { return nil }

// Handle is the proof of holding a lock, passed back as it was received. Its token was minted by the backend for this
// one acquisition, and renew and release compare it.
type Handle struct {
	key   string
	token string
	ttl   time.Duration
}

// Key is what is locked.
func (h *Handle) Key() string { return h.key }

// String tells which lock it is and not its token.
func (h *Handle) String() string { return "lock on " + h.key }

// InvalidError says which argument no backend can work with. It is a mistake of the caller, and nothing was changed.
type InvalidError struct {
	Field  string // key, ttl_ms or token
	Reason string // a sentence without its subject
}

func (e *InvalidError) Error() string { return e.Field + " " + e.Reason }

// checkLock holds the rules that are the same for every backend.
func checkLock(key string, ttl time.Duration) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return checkTTL(ttl)
}

// checkKey counts bytes, which is what Redis, an index and the reader of a log have to carry.
func checkKey(key string) error {
	switch {
	case key == "" || len(key) > MaxKeyBytes:
		return &InvalidError{"key", fmt.Sprintf("must have 1 to %d bytes, and this one has %d", MaxKeyBytes, len(key))}
	case !utf8.ValidString(key):
		return &InvalidError{"key", "must be valid UTF-8"}
	case strings.ContainsFunc(key, isControl):
		return &InvalidError{"key", "must not contain control characters or line breaks"}
	}
	return nil
}

// isControl covers the line and paragraph separators too, which unicode.IsControl does not.
func isControl(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) }

func checkTTL(ttl time.Duration) error {
	switch {
	case ttl < MinTTL || ttl > MaxTTL:
		return &InvalidError{"ttl_ms", fmt.Sprintf("must be 1 to %d (7 days)", MaxTTL.Milliseconds())}
	case ttl%time.Millisecond != 0:
		return &InvalidError{"ttl_ms", "must be whole milliseconds"}
	}
	return nil
}

// broken is the error of a backend that could not do its work. A caller who went away has not found anything broken.
func broken(ctx context.Context, what string, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %s (%w)", ErrBackend, what, cause)
}
