package locking

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

// BackendMemory is the name of the backend that locks within one process.
const BackendMemory = "memory"

// Memory keeps locks in this process alone: another process does not see them. It is for development, for an
// installation of one process, and what jobs with the hint prefer_global fall back to.
type Memory struct {
	NoCleanup

	now func() time.Time

	mu   sync.Mutex
	held map[string]memoryLock
}

// memoryLock is held until expires, which is no longer included.
type memoryLock struct {
	id      string
	expires time.Time
}

var _ Locker = (*Memory)(nil)

// NewMemory returns a Memory that nobody holds a lock in.
func NewMemory() *Memory { return &Memory{now: time.Now, held: map[string]memoryLock{}} }

// Name implements Locker.
func (*Memory) Name() string { return BackendMemory }

// Try implements Locker. It never fails but for its arguments or a cancelled context.
func (m *Memory) Try(ctx context.Context, key string, ttl time.Duration) (*Handle, error) {
	if err := checkLock(key, ttl); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweep()
	if _, taken := m.held[key]; taken {
		return nil, nil
	}
	h := &Handle{key: key, token: uuid.NewString(), ttl: ttl}
	m.held[key] = memoryLock{id: h.token, expires: now.Add(ttl)}
	return h, nil
}

// Renew implements Locker.
func (m *Memory) Renew(_ context.Context, h *Handle) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweep()
	if !m.owns(h) {
		return ErrNotOwner
	}
	m.held[h.key] = memoryLock{id: h.token, expires: now.Add(h.ttl)}
	return nil
}

// Release implements Locker.
func (m *Memory) Release(_ context.Context, h *Handle) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	if !m.owns(h) {
		return ErrNotOwner
	}
	delete(m.held, h.key)
	return nil
}

// sweep drops what has run out, at each access and on every key, so that a dead lock neither jams its key nor stays in
// memory. It returns the time that it judged by.
func (m *Memory) sweep() time.Time {
	now := m.now()
	maps.DeleteFunc(m.held, func(_ string, lock memoryLock) bool { return !now.Before(lock.expires) })
	return now
}

func (m *Memory) owns(h *Handle) bool {
	return h != nil && m.held[h.key].id == h.token && h.token != ""
}
