package featureflags

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Flags sets switches and knows their values. What it knows is as old as the last Refresh, which is called every few
// seconds. Safe for concurrent use.
type Flags struct {
	store Store

	refreshing sync.Mutex
	known      atomic.Pointer[map[string]Flag] // nil until the store has answered once
}

// New makes the service. Before the first Refresh every switch is off.
func New(store Store) *Flags { return &Flags{store: store} }

// List gives every switch, read from the store. organizationID limits the overrides to that organization's; empty means
// all of them, which is for callers that act across organizations only.
func (f *Flags) List(ctx context.Context, organizationID string) ([]Flag, error) {
	stored, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	var flags []Flag
	for _, key := range Keys() {
		flags = append(flags, limitedTo(organizationID, stored[key]))
	}
	return flags, nil
}

// Get gives one switch, as List does. Errors: ErrUnknownFlag.
func (f *Flags) Get(ctx context.Context, key, organizationID string) (Flag, error) {
	if err := mustExist(key); err != nil {
		return Flag{}, err
	}
	stored, err := f.read(ctx)
	if err != nil {
		return Flag{}, err
	}
	return limitedTo(organizationID, stored[key]), nil
}

// SetGlobal sets of how many in a hundred organizations the switch is on, 0 to 100. Errors: ErrUnknownFlag,
// ErrPercentOutOfRange.
func (f *Flags) SetGlobal(ctx context.Context, by By, key string, percent int) error {
	if err := mustExist(key); err != nil {
		return err
	}
	if percent < 0 || percent > 100 {
		return ErrPercentOutOfRange
	}
	return f.afterwards(ctx, f.store.SetFlag(ctx, by, key, percent))
}

// SetOverride sets an organization's own value. Errors: ErrUnknownFlag, ErrOrganizationNotFound.
func (f *Flags) SetOverride(ctx context.Context, by By, key, organizationID string, enabled bool) error {
	if err := mustExist(key); err != nil {
		return err
	}
	return f.afterwards(ctx, f.store.SetFlagOverride(ctx, by, key, organizationID, enabled))
}

// DeleteOverride makes the global value hold for the organization again. Errors: ErrUnknownFlag, ErrOverrideNotFound.
func (f *Flags) DeleteOverride(ctx context.Context, by By, key, organizationID string) error {
	if err := mustExist(key); err != nil {
		return err
	}
	return f.afterwards(ctx, f.store.DeleteFlagOverride(ctx, by, key, organizationID))
}

// afterwards makes this process see a write at once, even one whose answer was lost. If the store does not answer now,
// the next Refresh sees it, as in every other process.
func (f *Flags) afterwards(ctx context.Context, err error) error {
	_ = f.Refresh(context.WithoutCancel(ctx))
	return err
}

func mustExist(key string) error {
	if !slices.Contains(Keys(), key) {
		return ErrUnknownFlag
	}
	return nil
}

// limitedTo keeps an organization from seeing that others exist.
func limitedTo(organizationID string, flag Flag) Flag {
	if organizationID != "" {
		flag.Overrides = slices.DeleteFunc(slices.Clone(flag.Overrides), func(o Override) bool {
			return o.OrganizationID != organizationID
		})
	}
	return flag
}

// readTimeout bounds one reading of the store, so that refreshing never falls far behind.
const readTimeout = 3 * time.Second

// read gives every switch there is, those that were never set included; what an older or newer release knows is left out.
func (f *Flags) read(ctx context.Context) (map[string]Flag, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stored, err := f.store.Flags(ctx)
	if err != nil {
		return nil, err
	}
	flags := map[string]Flag{}
	for _, key := range Keys() {
		flags[key] = Flag{Key: key}
	}
	for _, flag := range stored {
		if _, ok := flags[flag.Key]; ok {
			flags[flag.Key] = flag
		}
	}
	for key, flag := range flags {
		flag.Purpose = purposes[key]
		flags[key] = flag
	}
	return flags, nil
}
