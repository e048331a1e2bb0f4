package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/lease"
	"allocator/reservation"
)

// racing is a store whose claims lose so many races before the real one is asked.
type racing struct {
	*Leases
	lose  int
	tries int
	by    func(ctx context.Context, tx pgx.Tx) error // what goes wrong; nil: a row that is written in between
}

func (r *racing) Claim(ctx context.Context, organization, resource string, fn func(ctx context.Context, tx lease.Tx) error) error {
	r.tries++
	if r.tries > r.lose {
		return r.Leases.Claim(ctx, organization, resource, fn)
	}
	return r.Leases.Claim(ctx, organization, resource, func(ctx context.Context, tx lease.Tx) error {
		if r.by != nil {
			return r.by(ctx, tx.(*leasing).tx)
		}
		return fn(ctx, late{tx})
	})
}

// late is a transaction whose writes come too late.
type late struct{ lease.Tx }

func (late) Insert(context.Context, lease.Lease) (bool, error)  { return false, nil }
func (late) Replace(context.Context, lease.Lease) (bool, error) { return false, nil }
func (late) Remove(context.Context, lease.Lease) (bool, error)  { return false, nil }

// A lost race is tried again three times, and then held without a lease, which is told apart from held by somebody. A
// deadlock and a lock that is not to be had count as lost races; a database that is away never does.
//
// Requirements: E08, E22, E23, E28.
func TestLostRacesAreTriedAgain(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	raise := func(state string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'made by the test' USING ERRCODE = '`+state+`'; END $$`)
			return err
		}
	}
	for name, tt := range map[string]struct {
		by      func(context.Context, pgx.Tx) error
		retried bool
	}{
		"a row that was written in between": {nil, true},
		"a deadlock":                        {raise("40P01"), true},
		"a lock that is not to be had":      {raise("55P03"), true},
		"a serialization failure":           {raise("40001"), true},
		"a database that shuts down":        {raise("57P01"), false},
		"a statement that takes too long":   {raise("57014"), false},
		"a disk that is full":               {raise("53100"), false},
	} {
		key := keyOf("rack:" + name)
		once := &racing{Leases: NewLeases(b.pool), lose: 3, by: tt.by}
		_, err := lease.NewService(once, b.rights).Acquire(t.Context(), writer("anna"), key, 60)
		if !tt.retried {
			require.ErrorIs(t, err, reservation.ErrUnavailable, name)
			require.NotErrorIs(t, err, lease.ErrHeld, name)
			require.Equal(t, 1, once.tries, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, 4, once.tries, name)
		always := &racing{Leases: NewLeases(b.pool), lose: 9, by: tt.by}
		service := lease.NewService(always, b.rights)
		for act, do := range map[string]func() error{
			"acquire":   func() error { _, err := service.Acquire(t.Context(), writer("anna"), key, 60); return err },
			"heartbeat": func() error { _, err := service.Heartbeat(t.Context(), writer("anna"), key, 60); return err },
			"take over": func() error { _, err := service.TakeOver(t.Context(), writer("bob"), key, 60, ""); return err },
		} {
			always.tries = 0
			err := do()
			var held *lease.HeldError
			require.ErrorAs(t, err, &held, name+", "+act)
			require.Nil(t, held.Lease, name+", "+act)
			require.Equal(t, 4, always.tries, name+", "+act)
		}
		require.Equal(t, []string{":anna"}, b.present(key.Resource), name)
	}
}

// deadlocked is a store whose changes meet so many clashes after they were made and before they are committed.
type deadlocked struct {
	*Leases
	state   string
	clashes int
	tries   int
}

func (d *deadlocked) Change(ctx context.Context, organization, resource string, fn func(ctx context.Context, tx lease.Tx) error) error {
	return d.Leases.Change(ctx, organization, resource, func(ctx context.Context, tx lease.Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		if d.tries++; d.tries > d.clashes {
			return nil
		}
		_, err := tx.(*leasing).tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'made by the test' USING ERRCODE = '`+d.state+`'; END $$`)
		return err
	})
}

// Giving back after a deadlock, as with a claim that writes the same rows in another order, is done again and tells what the
// last try did. Within an application's own transaction it is left to that.
//
// Requirements: E22.
func TestGivingBackIsRepeatedAfterADeadlock(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for name, tt := range map[string]struct {
		state          string
		clashes, tries int
		done           bool
	}{
		"a deadlock":                      {"40P01", 3, 4, true},
		"a serialization failure":         {"40001", 1, 2, true},
		"deadlocks without an end":        {"40P01", 9, 4, false},
		"a statement that takes too long": {"57014", 1, 1, false},
	} {
		whole, part := b.acquire("anna", keyOf("rack:"+name), 60), b.acquire("anna", keyOf("rack:"+name, "u1"), 60)
		store := &deadlocked{Leases: NewLeases(b.pool), state: tt.state, clashes: tt.clashes}
		left, err := lease.NewService(store, b.rights).Leave(t.Context(), writer("anna"), whole.Key.Resource)
		require.Equal(t, tt.tries, store.tries, name)
		if !tt.done {
			require.ErrorIs(t, err, reservation.ErrUnavailable, name)
			require.Equal(t, []string{":anna", "u1:anna"}, b.present(whole.Key.Resource), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, []lease.Lease{whole, part}, left, name)
		require.Empty(t, b.present(whole.Key.Resource), name)
	}
	b.acquire("anna", keyOf("rack:inside"), 60)
	inside := &deadlocked{Leases: LeasesIn(b.begin(t)), state: "40P01", clashes: 1}
	_, err := lease.NewService(inside, b.rights).Release(t.Context(), writer("anna"), keyOf("rack:inside"))
	require.ErrorIs(t, err, reservation.ErrUnavailable)
	require.Equal(t, 1, inside.tries)
}

// In an application's transaction a claim that fails is undone alone: the application goes on, and can claim again.
//
// Requirements: E24, E28, E29.
func TestAClaimThatFailsLeavesTheTransactionAround(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	b.acquire("bob", keyOf("rack:A12"), 60)
	around := b.begin(t)
	_, err := around.Exec(t.Context(), `INSERT INTO organizations (id, name) VALUES ('made-before', 'x')`)
	require.NoError(t, err)
	service := lease.NewService(LeasesIn(around), b.rights)
	_, err = service.Acquire(t.Context(), writer("anna"), keyOf("rack:A12"), 60)
	require.ErrorIs(t, err, lease.ErrHeld)
	broken := &racing{Leases: LeasesIn(around), lose: 2, by: func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'made by the test' USING ERRCODE = '40P01'; END $$`)
		return err
	}}
	_, err = lease.NewService(broken, b.rights).Acquire(t.Context(), writer("anna"), keyOf("rack:A13"), 60)
	require.NoError(t, err)
	require.NoError(t, around.Commit(t.Context()))
	require.Equal(t, []string{":anna"}, b.present("rack:A13"))
	require.Equal(t, 1, read[int](t, b.pool, `SELECT count(*) FROM organizations WHERE id = 'made-before'`))
}
