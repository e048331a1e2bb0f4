package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"
)

// crowd lets callers who ask for the same thing at the same time share one answer. It remembers nothing: work on an answer
// begins after each of those who share it has asked, so all are told what is so at some instant since then. Safe for
// concurrent use.
type crowd[K comparable, V any] struct {
	mu      sync.Mutex
	running map[K]*shared[V] // the newest that is being worked on
	next    map[K]*shared[V] // not yet begun: whoever asks now shares it
}

// shared is one answer; done is closed when the other fields are set.
type shared[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// crowdPatience is how long an answer waits for the one before it. One that is stuck, on a connection that died without a
// word, must not hold up everybody.
const crowdPatience = 100 * time.Millisecond

// errAbandoned is what the others get if the work on an answer ended in a panic.
var errAbandoned = errors.New("the request whose answer was to be shared has failed")

func newCrowd[K comparable, V any]() *crowd[K, V] {
	return &crowd[K, V]{running: map[K]*shared[V]{}, next: map[K]*shared[V]{}}
}

// do returns what work returns, called here or by somebody who asked at the same time. Work belongs to all who share it: it
// goes on when its caller has gone, for as long as a request may take.
func (c *crowd[K, V]) do(ctx context.Context, key K, work func(ctx context.Context) (V, error)) (V, error) {
	answer, before, first := c.join(key)
	if first {
		if before != nil {
			before.await(crowdPatience)
		}
		c.lead(ctx, key, answer, work)
	}
	select {
	case <-answer.done:
		return answer.value, answer.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// join finds the answer that has not begun, or makes it: then the caller is its first, and works for the others.
func (c *crowd[K, V]) join(key K) (answer, before *shared[V], first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer = c.next[key]; answer != nil {
		return answer, nil, false
	}
	answer = &shared[V]{done: make(chan struct{}), err: errAbandoned}
	c.next[key] = answer
	return answer, c.running[key], true
}

func (s *shared[V]) await(patience time.Duration) {
	select {
	case <-s.done:
	case <-time.After(patience):
	}
}

// lead works on an answer. From its beginning on others wait for the next one.
func (c *crowd[K, V]) lead(ctx context.Context, key K, answer *shared[V], work func(ctx context.Context) (V, error)) {
	c.mu.Lock()
	delete(c.next, key)
	c.running[key] = answer
	c.mu.Unlock()
	defer c.end(key, answer)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	answer.value, answer.err = work(ctx)
}

func (c *crowd[K, V]) end(key K, answer *shared[V]) {
	close(answer.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[key] == answer { // else somebody lost patience with it
		delete(c.running, key)
	}
}
