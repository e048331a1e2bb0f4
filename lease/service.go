package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Service gives leases and takes them back. Safe for concurrent use.
type Service struct {
	store   Store
	policy  Policy
	reader  PresenceReader // nil: the policy is asked, and then the store
	ceiling time.Duration
}

// Option settles something about a Service.
type Option func(s *Service)

// Ceiling settles how long heartbeats can keep a lease, counted from when it was granted; 0, the default, is for ever.
func Ceiling(longest time.Duration) Option { return func(s *Service) { s.ceiling = longest } }

// ReadPresenceBy settles who answers when the presence is read. Without it the policy is asked, and then the store.
func ReadPresenceBy(r PresenceReader) Option { return func(s *Service) { s.reader = r } }

// NewService returns the service over a store and a policy.
func NewService(store Store, policy Policy, options ...Option) *Service {
	s := &Service{store: store, policy: policy}
	for _, option := range options {
		option(s)
	}
	return s
}

// Acquire grants the key for so many seconds from now on, or renews it if the writer has it already. Errors: InvalidError,
// ErrEditRefused, HeldError, ErrCeiling.
func (s *Service) Acquire(ctx context.Context, w Writer, key Key, seconds int64) (Granted, error) {
	if err := checkClaim(w, key, seconds); err != nil {
		return Granted{}, err
	}
	if err := s.mayEdit(ctx, w, key); err != nil {
		return Granted{}, err
	}
	return s.claim(ctx, w, key, func(ctx context.Context, c *claim) error { return c.acquire(ctx, seconds) })
}

// Heartbeat keeps the writer's lease for so many seconds from now on, also one that has run out if nobody took it. A
// writer who may not edit any more loses it here. Errors: InvalidError, ErrEditRefused, LostError, ErrCeiling, and
// HeldError without a lease.
func (s *Service) Heartbeat(ctx context.Context, w Writer, key Key, seconds int64) (Granted, error) {
	if err := checkClaim(w, key, seconds); err != nil {
		return Granted{}, err
	}
	if err := s.mayEdit(ctx, w, key); err != nil {
		if errors.Is(err, ErrEditRefused) {
			_, freed := s.giveBack(ctx, w, key.Resource, func(l Lease) bool { return l.Key == key })
			err = errors.Join(err, freed)
		}
		return Granted{}, err
	}
	return s.claim(ctx, w, key, func(ctx context.Context, c *claim) error { return c.heartbeat(ctx, seconds) })
}

// TakeOver removes what others have of the key and of everything that overlaps it, and grants the key. The policy is asked
// for every active lease that would go; one no, and nothing is changed. Errors: InvalidError, ErrEditRefused, ErrCeiling,
// and HeldError without a lease.
func (s *Service) TakeOver(ctx context.Context, w Writer, key Key, seconds int64, reason string) (TakeOver, error) {
	if err := checkClaim(w, key, seconds); err != nil {
		return TakeOver{}, err
	}
	if err := s.mayEdit(ctx, w, key); err != nil {
		return TakeOver{}, err
	}
	var taken TakeOver
	granted, err := s.claim(ctx, w, key, func(ctx context.Context, c *claim) (err error) {
		taken, err = c.takeOver(ctx, seconds, reason)
		return err
	})
	taken.Granted = granted
	return taken, err
}

// Granted is a lease as it was just written.
type Granted struct {
	Lease Lease
	Now   time.Time
}

// TakeOver is what a take-over did.
type TakeOver struct {
	Granted
	Removed []Lease // the active leases of others that went
	Reason  string
}

// maxRetries is how often a claim that lost a race is tried again.
const maxRetries = 3

// claim takes the steps of a claim alone on the resource, and again from the start after a lost race. After the last one
// nobody can tell who has the key: HeldError without a lease.
func (s *Service) claim(
	ctx context.Context, w Writer, key Key, steps func(ctx context.Context, c *claim) error,
) (Granted, error) {
	for retries := 0; ; retries++ {
		var granted Granted
		err := s.store.Claim(ctx, w.Organization, key.Resource, func(ctx context.Context, tx Tx) error {
			standing, err := tx.Standing(ctx)
			if err != nil {
				return err
			}
			c := &claim{tx: tx, policy: s.policy, ceiling: s.ceiling, writer: w, key: key, seen: standing}
			if err := steps(ctx, c); err != nil {
				return err
			}
			granted = Granted{Lease: c.granted, Now: standing.Now}
			return tx.Tell(ctx)
		})
		switch {
		case !errors.Is(err, ErrLostRace):
			return granted, err
		case retries == maxRetries:
			return Granted{}, &HeldError{}
		}
		select {
		case <-ctx.Done():
			return Granted{}, ctx.Err()
		case <-time.After(rand.N(time.Duration(retries+1) * 10 * time.Millisecond)): //nolint:gosec // jitter
		}
	}
}
