package locking

import (
	"context"
	"fmt"
)

// reserve takes a place, or says that there is none: more connections would starve everybody else of the database.
func (p *Postgres) reserve() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return fmt.Errorf("%w: it was cleaned up", ErrBackend)
	case p.places >= p.limit:
		return fmt.Errorf("%w: this process has %d locks, each in a connection of its own, and may have no more: release some, raise pg.max_locks, or use the redis backend",
			ErrBackend, p.places)
	}
	p.places++
	return nil
}

func (p *Postgres) unreserve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places--
}

func (p *Postgres) keep(ctx context.Context, token string, s *session) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.places--
		s.close(ctx)
		return fmt.Errorf("%w: it was cleaned up", ErrBackend)
	}
	p.live[token] = s
	return nil
}

func (p *Postgres) find(h *Handle) *session {
	if h == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live[h.token]
}

// forget takes the session out, so that exactly one caller closes it.
func (p *Postgres) forget(h *Handle) *session {
	if h == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.live[h.token]
	if s != nil {
		delete(p.live, h.token)
		p.places--
	}
	return s
}
