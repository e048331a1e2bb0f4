//go:build gates && unix

package concurrency_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
	"allocator/sweeper"
)

// pooler starts pgbouncer in transaction mode before the world's database and returns the connection string through it.
func (w *world) pooler() string {
	w.t.Helper()
	through := postgrestest.Bouncer(w.t, w.url)
	return postgrestest.With(w.t, through, map[string]string{"default_query_exec_mode": "cache_describe"})
}

// Behind a pooler in transaction mode, which gives each transaction another session, everything works with described
// statements and a queue that polls. The pooler drops the timeouts that travel with a connection; the database has them.
//
// Requirements: R64. Faults: F-N5.
func TestBehindAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bare, err := postgres.Open(w.ctx, w.pooler(), postgres.PoolOptions{MaxConns: 1})
	require.NoError(t, err)
	require.ErrorIs(t, postgres.CheckServer(w.ctx, bare), postgres.ErrNoTimeout)
	bare.Close()
	w.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout = 15000', current_database());
		EXECUTE format('ALTER DATABASE %I SET lock_timeout = 3000', current_database()); END $$`)
	through := w.pooler() // another one: the sessions of the first are older than the settings
	pool, err := postgres.Open(w.ctx, through, postgres.PoolOptions{})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.NoError(t, postgres.CheckServer(w.ctx, pool))
	w.serve(pool)
	w.servers(6)

	outcomes := make([]*allocation.Outcome, 10)
	together(len(outcomes), func(i int) {
		outcome, err := w.allocator.Reserve(w.ctx, w.caller, request(fmt.Sprint(i)))
		if err != nil {
			t.Errorf("reserve %d: %v", i, err)
		}
		outcomes[i] = outcome
	})
	for len(w.storedByName()) < 6 { // those that were told to try again
		w.reserve(w.ctx, request(fmt.Sprint("again-", len(w.storedByName()))))
	}
	stored := w.storedByName()
	names := make([]string, 0, len(stored))
	for name := range stored {
		names = append(names, name)
		require.Equal(t, allocation.OutcomeReplayed, w.reserve(w.ctx, request(name)).Code)
	}
	together(3, func(i int) {
		if err := deeds["renew"](w.ctx, nil, w.reservations, stored[names[i]]); err != nil {
			t.Errorf("renew: %v", err)
		}
		if _, err := w.reservations.Convert(w.ctx, w.caller, stored[names[i]], "", fmt.Sprint("service-", i)); err != nil {
			t.Errorf("convert: %v", err)
		}
	})
	require.NoError(t, deeds["cancel"](w.ctx, nil, w.reservations, stored[names[3]]))
	w.expire(stored[names[4]])
	require.Equal(t, 1, swept(w, w.ctx, w.reservations))
	var timeouts string
	require.NoError(t, pool.QueryRow(w.ctx, `SELECT current_setting('idle_in_transaction_session_timeout') || ' ' || current_setting('lock_timeout')`).Scan(&timeouts))
	require.Equal(t, "15s 3s", timeouts)

	worker, err := sweeper.New(pool, sweeper.Options{
		Reservations: reservation.NewService(postgres.NewReservations(pool), reservation.TokenKeys{}),
		Partitions:   postgres.NewPartitions(pool),
		Log:          slog.New(slog.DiscardHandler),
		Every:        2 * time.Second,
		PollOnly:     true,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	w.expire(stored[names[5]])
	w.sweptByWorker(stored[names[5]])
	stop()
	require.NoError(t, receive(w, done))
	w.sound()
}
