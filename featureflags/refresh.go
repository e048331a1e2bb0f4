package featureflags

import (
	"context"
	"log/slog"
	"time"
)

// refreshEvery and readTimeout together keep the promise that a change is seen within 10 s.
const refreshEvery = 3 * time.Second

// Refresh reads the values anew. If the store does not answer, the last known ones stay.
func (f *Flags) Refresh(ctx context.Context) error {
	// One at a time, or an older reading could be stored over a newer one.
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	flags, err := f.read(ctx)
	if err != nil {
		return err
	}
	f.known.Store(&flags)
	return nil
}

// Run refreshes at once and then every few seconds until ctx ends. One goroutine per process.
func (f *Flags) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		if err := f.Refresh(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "switches could not be read; the last known values hold, or off", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// value is a switch as it was last known, and whether the store has ever told it.
func (f *Flags) value(key string) (flag Flag, known bool) {
	flags := f.known.Load()
	if flags == nil {
		return Flag{Key: key}, false
	}
	return (*flags)[key], true
}
