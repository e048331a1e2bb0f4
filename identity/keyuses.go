package identity

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// useEvery is how exactly the last use of a key is known; writing each use would cost a write per request.
	useEvery = time.Minute
	// flushEvery is how often the uses gathered meanwhile are written.
	flushEvery = 10 * time.Second
	// flushTimeout bounds one writing, the last one at the end of the process included.
	flushTimeout = 2 * time.Second
)

// keyUses gathers which keys were used, so that no request waits for that to be written, or fails by it. It holds at
// most one entry per key that was accepted.
type keyUses struct {
	mu      sync.Mutex
	pending map[KeyID]struct{}
}

func newKeyUses() *keyUses { return &keyUses{pending: map[KeyID]struct{}{}} }

// note remembers the use, unless one of the last minute is on record.
func (u *keyUses) note(record *KeyRecord) {
	if record.LastUsedAt != nil && record.AsOf.Sub(*record.LastUsedAt) < useEvery {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending[record.ID] = struct{}{}
}

func (u *keyUses) take() []KeyID {
	u.mu.Lock()
	defer u.mu.Unlock()
	ids := slices.Sorted(maps.Keys(u.pending))
	clear(u.pending)
	return ids
}

// FlushUses writes the uses gathered since the last call. A use that could not be written is dropped: the next request
// with that key notes it again.
func (s *Keys) FlushUses(ctx context.Context) error {
	ids := s.uses.take()
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	return s.store.TouchKeys(ctx, ids)
}

// Run writes the last use of keys from time to time until ctx ends, and once more then. One goroutine per process.
func (s *Keys) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		if err := s.FlushUses(context.WithoutCancel(ctx)); err != nil {
			log.WarnContext(ctx, "the last use of keys could not be recorded; it will be with their next use", "error", err)
		}
	}
}
