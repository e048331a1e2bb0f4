package featureflags

import (
	"context"
	"time"
)

// RefreshEvery is how often each process has to call Refresh: together with readTimeout it keeps the promise that a
// change is seen within 10 s.
const RefreshEvery = 3 * time.Second

// Refresh reads the values anew. If the store does not answer, the last known ones stay, or off.
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

// value is a switch as it was last known, and whether the store has ever told it.
func (f *Flags) value(key string) (flag Flag, known bool) {
	flags := f.known.Load()
	if flags == nil {
		return Flag{Key: key}, false
	}
	return (*flags)[key], true
}
