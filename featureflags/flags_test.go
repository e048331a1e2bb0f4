package featureflags

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// storeFake keeps one switch in memory, whatever key it is given.
type storeFake struct {
	mu    sync.Mutex
	flag  Flag
	reads int
	down  error
}

func (f *storeFake) Flags(context.Context) ([]Flag, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if f.down != nil {
		return nil, f.down
	}
	flag := f.flag
	flag.Overrides = slices.Clone(flag.Overrides)
	return []Flag{flag, {Key: "of_another_release", Percent: 100}}, nil
}

func (f *storeFake) write(change func(*Flag)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return f.down
	}
	f.flag.Key = Reservations
	change(&f.flag)
	return nil
}

func (f *storeFake) SetFlag(_ context.Context, _ By, _ string, percent int) error {
	return f.write(func(flag *Flag) { flag.Percent = percent })
}

func (f *storeFake) SetFlagOverride(_ context.Context, _ By, _, organizationID string, enabled bool) error {
	return f.write(func(flag *Flag) {
		flag.Overrides = append(without(flag.Overrides, organizationID), Override{OrganizationID: organizationID, Enabled: enabled})
	})
}

func (f *storeFake) DeleteFlagOverride(_ context.Context, _ By, _, organizationID string) error {
	return f.write(func(flag *Flag) { flag.Overrides = without(flag.Overrides, organizationID) })
}

func without(overrides []Override, organizationID string) []Override {
	return slices.DeleteFunc(overrides, func(o Override) bool { return o.OrganizationID == organizationID })
}

func (f *storeFake) breakDown(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

func (f *storeFake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

// setup gives the service over a fake, and the switch as the allocator asks it.
func setup(t *testing.T) (*Flags, *Switch, *storeFake) {
	t.Helper()
	store := &storeFake{}
	flags := New(store)
	release, err := NewSwitch(t.Context(), NewProvider(flags))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, release.Close(context.WithoutCancel(t.Context()))) })
	return flags, release, store
}

// Requirements: R62, R63.
func TestOverrideWinsOverGlobalWinsOverOff(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		percent  *int
		override *bool
		want     bool
	}{
		"nothing set is off":                      {nil, nil, false},
		"global 0 is off":                         {new(0), nil, false},
		"global 100 is on":                        {new(100), nil, true},
		"override on wins over nothing":           {nil, new(true), true},
		"override on wins over global 0":          {new(0), new(true), true},
		"override off wins over global 100":       {new(100), new(false), false},
		"override off says the same as nothing":   {nil, new(false), false},
		"override on says the same as global 100": {new(100), new(true), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags, release, _ := setup(t)
			if test.percent != nil {
				require.NoError(t, flags.SetGlobal(t.Context(), By{}, Reservations, *test.percent))
			}
			if test.override != nil {
				require.NoError(t, flags.SetOverride(t.Context(), By{}, Reservations, "demo", *test.override))
			}
			require.Equal(t, test.want, release.Enabled(t.Context(), "demo"))
			flag, err := flags.Get(t.Context(), Reservations, "demo")
			require.NoError(t, err)
			require.Equal(t, test.want, flag.EnabledFor("demo"), "what is shown is what holds")

			require.Equal(t, test.percent != nil && *test.percent == 100, release.Enabled(t.Context(), "another"))
			require.Equal(t, test.percent != nil && *test.percent == 100, release.Enabled(t.Context(), ""), "without an organization")
		})
	}
}

// Requirements: R62.
func TestPercentageIsAStableShare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		org := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`).Draw(t, "organization")
		percent := rapid.IntRange(0, 100).Draw(t, "percent")
		more := rapid.IntRange(percent, 100).Draw(t, "more")
		on := inPercentage(Reservations, org, percent)

		require.Equal(t, on, inPercentage(Reservations, org, percent), "every replica says the same")
		require.False(t, inPercentage(Reservations, org, 0), "0 % is nobody")
		require.True(t, inPercentage(Reservations, org, 100), "100 %% is everybody")
		require.False(t, on && !inPercentage(Reservations, org, more), "who is in stays in while the share grows")
		require.Equal(t, percent == 100, inPercentage(Reservations, "", percent), "without an organization only everybody counts")
	})
}

// The same organizations have to be in after an upgrade: this list may never change.
// Requirements: R62.
func TestPercentageIsTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	var in []string
	for i := range 20 {
		if org := fmt.Sprintf("org-%d", i); inPercentage(Reservations, org, 50) {
			in = append(in, org)
		}
	}
	require.Equal(t, frozenHalf, in)
}

// Requirements: R62.
func TestPercentageSpreadsEvenly(t *testing.T) {
	t.Parallel()
	const organizations = 10_000
	for _, percent := range []int{1, 10, 50, 99} {
		in := 0
		for i := range organizations {
			if inPercentage(Reservations, fmt.Sprintf("org-%d", i), percent) {
				in++
			}
		}
		require.InDelta(t, percent*organizations/100, in, organizations/50, "%d %%", percent)
	}
}

func TestUnknownSwitchesAndValuesAreRefused(t *testing.T) {
	t.Parallel()
	flags, _, store := setup(t)
	ctx := t.Context()
	_, err := flags.Get(ctx, "reservation", "")
	require.ErrorIs(t, err, ErrUnknownFlag)
	require.ErrorIs(t, flags.SetGlobal(ctx, By{}, "of_another_release", 100), ErrUnknownFlag)
	require.ErrorIs(t, flags.SetOverride(ctx, By{}, "", "demo", true), ErrUnknownFlag)
	require.ErrorIs(t, flags.DeleteOverride(ctx, By{}, "Reservations", "demo"), ErrUnknownFlag)
	require.ErrorIs(t, flags.SetGlobal(ctx, By{}, Reservations, -1), ErrPercentOutOfRange)
	require.ErrorIs(t, flags.SetGlobal(ctx, By{}, Reservations, 101), ErrPercentOutOfRange)
	require.Equal(t, Flag{}, store.flag)
	require.Zero(t, store.count())
}

func TestListShowsAnOrganizationItsOwnOverrideOnly(t *testing.T) {
	t.Parallel()
	flags, _, _ := setup(t)
	ctx := t.Context()
	require.NoError(t, flags.SetOverride(ctx, By{}, Reservations, "demo", true))
	require.NoError(t, flags.SetOverride(ctx, By{}, Reservations, "other", false))

	list, err := flags.List(ctx, "demo")
	require.NoError(t, err)
	require.Equal(t, []Flag{{
		Key: Reservations, Purpose: purposes[Reservations], Overrides: []Override{{OrganizationID: "demo", Enabled: true}},
	}}, list)
	all, err := flags.List(ctx, "")
	require.NoError(t, err)
	require.Len(t, all[0].Overrides, 2)
}

// Requirements: R62. Faults: F-D6.
func TestUnreachableStoreMeansLastKnownElseOff(t *testing.T) {
	t.Parallel()
	flags, release, store := setup(t)
	ctx := t.Context()
	broken := errors.New("connection refused")

	store.breakDown(broken)
	require.ErrorIs(t, flags.Refresh(ctx), broken)
	require.False(t, release.Enabled(ctx, "demo"), "never known: off")

	store.breakDown(nil)
	require.NoError(t, flags.SetGlobal(ctx, By{}, Reservations, 100))
	store.breakDown(broken)
	require.ErrorIs(t, flags.Refresh(ctx), broken)
	require.True(t, release.Enabled(ctx, "demo"), "last known: on")
	_, err := flags.List(ctx, "")
	require.ErrorIs(t, err, broken, "what is shown to people is not a guess")
}

func TestAnotherProcessSeesAChangeWithItsNextRefresh(t *testing.T) {
	t.Parallel()
	flags, _, store := setup(t)
	otherFlags := New(store)
	other, err := NewSwitch(t.Context(), NewProvider(otherFlags))
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(context.WithoutCancel(t.Context()))) }()

	require.NoError(t, flags.SetOverride(t.Context(), By{}, Reservations, "demo", true))
	require.False(t, other.Enabled(t.Context(), "demo"))
	require.NoError(t, otherFlags.Refresh(t.Context()))
	require.True(t, other.Enabled(t.Context(), "demo"))
	require.LessOrEqual(t, RefreshEvery+readTimeout, 10*time.Second, "the promise of Refresh")
}

// frozenHalf is which of org-0 to org-19 are in at 50 %, computed outside of this program.
var frozenHalf = []string{"org-0", "org-2", "org-6", "org-8", "org-16"}
