package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/lease"
)

// Claims on one resource run one after the other: the second waits for the first, and reads what that wrote. So of two
// holders who ask for the whole and for a part at the same instant exactly one gets it. The first is an application's own
// transaction here: the claim is a savepoint in it, and the resource stays taken until it commits. Claims on other
// resources do not wait, and neither do release, leave and presence.
//
// Requirements: E25, E26, E27, E29, E30.
func TestWholeAndPartAtTheSameInstant(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for name, tt := range map[string]struct {
		first, second lease.Key
		commit        bool
	}{
		"the whole before a part":                   {keyOf("a"), keyOf("a", "p"), true},
		"a part before the whole":                   {keyOf("b", "p"), keyOf("b"), true},
		"an application that changes its mind":      {keyOf("c", "p"), keyOf("c"), false},
		"the same key":                              {keyOf("d"), keyOf("d"), true},
		"a resource that was claimed long ago":      {keyOf("e", "p"), keyOf("e"), true},
		"a resource that is claimed the first time": {keyOf("f", "p"), keyOf("f"), true},
	} {
		resource := tt.first.Resource
		if resource == "e" {
			b.acquire("old", keyOf("e", "q"), 60)
			_, err := b.one.Release(t.Context(), writer("old"), keyOf("e", "q"))
			require.NoError(t, err)
		}
		others := []string{} // bob's, which are in nobody's way
		if tt.first.Part != "" && resource != "f" {
			others = []string{"z1:bob", "z2:bob", "z3:bob"}
			for _, part := range []string{"z1", "z2", "z3"} {
				b.acquire("bob", keyOf(resource, part), 60)
			}
		}
		around := b.begin(t)
		_, err := lease.NewService(LeasesIn(around), b.rights).Acquire(t.Context(), writer("anna"), tt.first, 60)
		require.NoError(t, err, name)
		require.Equal(t, others, b.present(resource), "%s: it is not committed, and presence does not wait", name)
		released, err := b.two.Release(t.Context(), writer("bob"), keyOf(resource, "z1"))
		require.NoError(t, err, name)
		require.Equal(t, len(others) > 0, released.Held, "%s: a release waits for no claim", name)
		left, err := b.two.Leave(t.Context(), writer("bob"), resource)
		require.NoError(t, err, name)
		require.Len(t, left, max(0, len(others)-1), "%s: nor does leaving", name)
		b.acquire("bob", keyOf("elsewhere:"+resource), 60)

		outcome := make(chan error, 1)
		b.waits(t, func() {
			_, err := b.two.Acquire(t.Context(), writer("bob"), tt.second, 60)
			outcome <- err
		})
		if tt.commit {
			require.NoError(t, around.Commit(t.Context()))
			var held *lease.HeldError
			require.ErrorAs(t, <-outcome, &held, name)
			require.Equal(t, "anna", held.Lease.Holder.ID, name)
		} else {
			require.NoError(t, around.Rollback(t.Context()))
			require.NoError(t, <-outcome, name)
		}
	}
}

// unserialised claims without taking the resource's row.
type unserialised struct{ *Leases }

// Claim implements lease.Store.
func (u unserialised) Claim(ctx context.Context, organization, resource string, fn func(ctx context.Context, tx lease.Tx) error) error {
	return u.Change(ctx, organization, resource, fn)
}

// The control: without the resource's row the whole and a part, asked for at the same instant, are both had.
//
// Requirements: E25, E26.
func TestControlWithoutTheResourceRowBothGetIt(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	around := b.begin(t)
	_, err := lease.NewService(unserialised{LeasesIn(around)}, b.rights).Acquire(t.Context(), writer("anna"), keyOf("rack:A12"), 60)
	require.NoError(t, err)
	_, err = lease.NewService(unserialised{NewLeases(b.pool)}, b.rights).Acquire(t.Context(), writer("bob"), keyOf("rack:A12", "u17"), 60)
	require.NoError(t, err)
	require.NoError(t, around.Commit(t.Context()))
	require.Equal(t, []string{":anna", "u17:bob"}, b.present("rack:A12"))
}

// Many holders who ask at once for the whole and for parts: never does one have something that overlaps another's.
//
// Requirements: E04, E25, E26.
func TestManyClaimsAtOnce(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for round := range 10 {
		resource := fmt.Sprint("rack:", round)
		var all sync.WaitGroup
		var mu sync.Mutex
		var got []lease.Lease
		for i := range 6 {
			all.Go(func() {
				key := keyOf(resource)
				if i > 0 {
					key.Part = fmt.Sprint("u", i%3)
				}
				granted, err := []*lease.Service{b.one, b.two}[i%2].Acquire(t.Context(), writer(fmt.Sprint("h", i)), key, 60)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, granted.Lease)
					return
				}
				if !errors.Is(err, lease.ErrHeld) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.NotEmpty(t, got)
		for i, one := range got {
			for _, other := range got[i+1:] {
				require.False(t, one.Key.Overlaps(other.Key), "%v and %v", one, other)
			}
		}
	}
}
