//go:build gates

package gate

import (
	"context"
	"sync"
)

// Set is the gates of one caller, carried by its context. Safe for concurrent use.
type Set struct {
	mu      sync.Mutex
	armed   map[Place]func(ctx context.Context) error
	reached map[Place]int
}

type contextKey struct{}

// With returns a context that carries the set.
func With(ctx context.Context, s *Set) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// Arm makes every pass of the place call do, whose error becomes the error of the transaction there.
func (s *Set) Arm(p Place, do func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed == nil {
		s.armed, s.reached = map[Place]func(context.Context) error{}, map[Place]int{}
	}
	s.armed[p] = do
}

// Reached tells how often an armed place was passed.
func (s *Set) Reached(p Place) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached[p]
}

// Pause arms the place so that the first pass reports on arrived and goes on when release is called; later passes do
// not stop. Release may be called more than once.
func (s *Set) Pause(p Place) (arrived <-chan struct{}, release func()) {
	here, open := make(chan struct{}), make(chan struct{})
	var first, once sync.Once
	s.Arm(p, func(ctx context.Context) error {
		var err error
		first.Do(func() {
			close(here)
			select {
			case <-open:
			case <-ctx.Done():
				err = ctx.Err()
			}
		})
		return err
	})
	return here, func() { once.Do(func() { close(open) }) }
}

// Armed tells whether the context carries a set in which the place is armed.
func Armed(ctx context.Context, p Place) bool { return find(ctx, p) != nil }

// At runs what the place is armed with.
func At(ctx context.Context, p Place) error {
	if do := find(ctx, p); do != nil {
		return do(ctx)
	}
	return nil
}

func find(ctx context.Context, p Place) func(context.Context) error {
	s, _ := ctx.Value(contextKey{}).(*Set)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	do := s.armed[p]
	if do == nil {
		return nil
	}
	return func(ctx context.Context) error {
		s.mu.Lock()
		s.reached[p]++
		s.mu.Unlock()
		return do(ctx)
	}
}
