package main

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
	"allocator/transport/httpapi"
)

// A process is not ready before it has read the inventories, and then it has: a first request would wait for a large one.
// What cannot be read keeps nobody waiting.
func TestInventoriesAreReadAhead(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	_, err := pool.Exec(t.Context(), `INSERT INTO organizations (id, name) VALUES ('acme', 'Acme'), ('rival', 'Rival')`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO servers (organization_id, id, source, external_id, name, site, state)
		SELECT 'rival', uuid_v7(), 'test', n::text, 'server ' || n, 'FSN1', 'ready' FROM generate_series(1, 10) AS t (n)`)
	require.NoError(t, err)
	tokens, err := reservation.ParseTokenKeys("k1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	require.NoError(t, err)
	a, err := newApp(t.Context(), pool, appOptions{tokens: tokens})
	require.NoError(t, err)
	w := newWarming(a)
	var notYet httpapi.NotYetError
	require.ErrorAs(t, w.Ready(t.Context()), &notYet)
	require.Contains(t, string(notYet), "0 so far")

	blocker, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = blocker.Exec(t.Context(), `LOCK TABLE servers IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	var log bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	}()
	require.Eventually(t, func() bool {
		var waits bool
		err := blocker.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'servers'::regclass)`).Scan(&waits)
		return err == nil && waits
	}, hang, poll)
	require.ErrorAs(t, w.Ready(t.Context()), &notYet)
	require.NoError(t, blocker.Rollback(t.Context()))
	<-done
	require.NoError(t, w.Ready(t.Context()))
	require.Contains(t, log.String(), "organizations=2")

	w = newWarming(a)
	pool.Close()
	w.Run(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	require.ErrorIs(t, w.Ready(t.Context()), reservation.ErrUnavailable)
	require.Contains(t, log.String(), "the inventories are not read ahead")
}
