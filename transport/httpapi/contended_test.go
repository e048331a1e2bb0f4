package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Somebody else has what fits at this moment: try again shortly.
//
// Requirements: R20, R24, R25, R35.
func TestContended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.addServer(65536)
	hold := func() (release func()) {
		tx, err := w.pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `SELECT FROM servers WHERE 'srv_' || replace(id::text, '-', '') = $1 FOR UPDATE`, server)
		require.NoError(t, err)
		return func() { require.NoError(t, tx.Rollback(t.Context())) }
	}

	release := hold()
	a := w.reserve("acme:checkout", "1").is(409, "contended")
	require.Equal(t, "servers_taken", a.text("cause"))
	require.Equal(t, []string{"1", "0", "0", "true", "retry"}, []string{a.text("skipped"), a.text("stale"), a.text("attempts"), a.text("retryable"), a.text("action")})
	require.Contains(t, []string{"1", "2", "3"}, a.header.Get("Retry-After"))
	require.Empty(t, a.header.Get("Preference-Applied"))
	require.NotContains(t, string(a.body), server)

	a = w.post("acme:checkout", "/v1/reservations", order("1"), "Idempotency-Key", "key-1", "Prefer", "respond-async, wait=1").is(409, "contended")
	require.Equal(t, "wait=1", a.header.Get("Preference-Applied"))
	release()

	a = w.post("acme:checkout", "/v1/reservations", order("1"), "Idempotency-Key", "key-1", "Prefer", "wait=99").is(201, "")
	require.Equal(t, "wait=5", a.header.Get("Preference-Applied"))
}

// A sibling at work is told apart from servers that are taken, and nobody waits for it.
//
// Requirements: R43, R45.
func TestContendedWithASibling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(65536)
	tx, err := w.pool.Begin(t.Context())
	require.NoError(t, err)
	lock := `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), VARIADIC $1::text[]), 0))`
	_, err = tx.Exec(t.Context(), lock, []string{"reserve.key", "acme", "key-1"})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), lock, []string{"reserve.line", "acme", "A-2", "1", "1"})
	require.NoError(t, err)
	require.Equal(t, "same_key", w.reserve("acme:checkout", "1").is(409, "contended").text("cause"))
	require.Equal(t, "same_order_line", w.reserve("acme:checkout", "2").is(409, "contended").text("cause"))
	require.NoError(t, tx.Rollback(t.Context()))
	w.reserve("acme:checkout", "1").is(201, "")
}
