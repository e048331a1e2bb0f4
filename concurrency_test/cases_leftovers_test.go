//go:build gates

package concurrency_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/gate"
)

// Locks that keep siblings apart last as long as a transaction: of a thousand orders that ten workers place over a pool of
// ten, each asked for twice, there are two for each worker at the most, and afterwards none.
//
// Cases: JO-11.
func TestNoAdvisoryLockStays(t *testing.T) {
	t.Parallel()
	const workers, orders = 10, 100
	w := newWorld(t)
	w.manyServers(workers * orders)
	config := w.pool.Config()
	config.MaxConns = workers
	pool, err := pgxpool.NewWithConfig(w.ctx, config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	w.serve(pool)
	const locks = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	together(workers, func(i int) {
		for n := range orders {
			for range 2 {
				if _, err := w.allocator.Reserve(w.ctx, w.caller, request(fmt.Sprintf("%d-%d", i, n))); err != nil {
					t.Errorf("reserve: %v", err)
				}
			}
			var now int
			if err := w.pool.QueryRow(w.ctx, locks).Scan(&now); err != nil || now > 2*workers {
				t.Errorf("%d locks, %v", now, err)
			}
		}
	})
	require.Zero(t, one[int](w, locks))
	require.Equal(t, workers*orders, one[int](w, `SELECT count(*) FROM occupancy`))
}

// A panic anywhere inside a change leaves nothing of it, and the same request does it afterwards.
//
// Cases: CO-08, OP-09. Faults: F-C9.
func TestPanicInsideAChange(t *testing.T) {
	t.Parallel()
	for deed, places := range placesOf {
		for _, place := range places {
			t.Run(deed+" at "+string(place), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, deed)
				require.PanicsWithValue(t, "on purpose", func() {
					set := &gate.Set{}
					set.Arm(place, func(context.Context) error { panic("on purpose") })
					_ = s.do(gate.With(s.ctx, set))
				})
				s.untouched()
				require.Zero(t, s.pool.Stat().AcquiredConns())
				require.NoError(t, s.again())
				s.sound()
			})
		}
	}
}
