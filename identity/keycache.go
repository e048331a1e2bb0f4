package identity

import (
	"context"
	"errors"
	"sync"
	"time"
)

// An answer of the store serves for keyTTL from the moment it was asked for, and nobody waits for one longer than
// lookUpTimeout. Each is well below the 5 s within which a revoked key is refused everywhere: an answer given at the
// last moment is younger than either of them.
const (
	keyTTL        = 3 * time.Second
	lookUpTimeout = 2 * time.Second
)

// The cache is bounded. Unknown keys have their own, smaller part, so that somebody who tries ids cannot push out the
// keys of those who work.
const (
	maxKnownKeys   = 10_000
	maxUnknownKeys = 1_000
)

type lookUpKey func(context.Context, KeyID) (KeyRecord, error)

// keyCache spares the database a read per request. A crowd that comes with one key shares one read.
type keyCache struct {
	lookUp lookUpKey
	now    func() time.Time

	mu      sync.Mutex
	known   map[KeyID]cached
	unknown map[KeyID]cached
	running map[KeyID]*reading
}

// cached is one answer; a nil record says that there is no such key.
type cached struct {
	record *KeyRecord
	until  time.Time
}

// reading is one question to the store that is under way; done is closed when the other fields are set.
type reading struct {
	done   chan struct{}
	record *KeyRecord
	err    error
}

func newKeyCache(lookUp lookUpKey, now func() time.Time) *keyCache {
	return &keyCache{
		lookUp:  lookUp,
		now:     now,
		known:   map[KeyID]cached{},
		unknown: map[KeyID]cached{},
		running: map[KeyID]*reading{},
	}
}

// get gives the record of a key, nil if there is no such key, and an error if that could not be found out. The record
// is shared: callers must not change it.
func (c *keyCache) get(ctx context.Context, id KeyID) (*KeyRecord, error) {
	record, read := c.find(ctx, id)
	if read == nil {
		return record, nil
	}
	select {
	case <-read.done:
		return read.record, read.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// find gives the cached answer, or else the reading that will tell, which it begins if nobody has.
func (c *keyCache) find(ctx context.Context, id KeyID) (*KeyRecord, *reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, part := range []map[KeyID]cached{c.known, c.unknown} {
		if hit, ok := part[id]; ok && c.now().Before(hit.until) {
			return hit.record, nil
		}
	}
	read, ok := c.running[id]
	if !ok {
		read = &reading{done: make(chan struct{})}
		c.running[id] = read
		go c.read(context.WithoutCancel(ctx), id, read)
	}
	return nil, read
}

// read asks the store. It belongs to all who wait for it, so the end of one caller's request does not end it; its own
// timeout does.
func (c *keyCache) read(ctx context.Context, id KeyID, read *reading) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	asked := c.now()
	record, err := c.lookUp(ctx, id)
	switch {
	case err == nil:
		read.record = &record
	case !errors.Is(err, ErrKeyNotFound):
		read.err = err
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[id] == read { // else the key was changed meanwhile, and this answer may be old
		delete(c.running, id)
		c.keep(id, read, asked)
	}
	close(read.done)
}

// keep files an answer, never an error.
func (c *keyCache) keep(id KeyID, read *reading, asked time.Time) {
	switch {
	case read.err != nil:
	case read.record == nil:
		delete(c.known, id)
		put(c.unknown, maxUnknownKeys, id, cached{until: asked.Add(keyTTL)})
	default:
		delete(c.unknown, id)
		put(c.known, maxKnownKeys, id, cached{read.record, asked.Add(lifetime(read.record))})
	}
}

// lifetime ends with the key: the record is read again then, so that the store's clock alone decides about expiry.
func lifetime(record *KeyRecord) time.Duration {
	if record.ExpiresAt == nil || record.expired() {
		return keyTTL
	}
	return min(keyTTL, record.ExpiresAt.Sub(record.AsOf))
}

// put makes room by dropping any one entry: with a lifetime of seconds it matters little which.
func put(part map[KeyID]cached, limit int, id KeyID, answer cached) {
	if _, there := part[id]; !there && len(part) >= limit {
		for victim := range part {
			delete(part, victim)
			break
		}
	}
	part[id] = answer
}

// forget makes the next get ask the store, and keeps an answer that is under way from being filed.
func (c *keyCache) forget(id KeyID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, id)
	delete(c.unknown, id)
	delete(c.running, id)
}
