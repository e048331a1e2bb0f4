package redisport_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
	"allocator/transport/redisport"
)

// A database that is away is an error of every command, never nil, 0 or -2: nobody may take it for a lock that somebody
// has, or for one that is free. When it is back, so are the answers, on the same connection.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	pool, way := postgrestest.NewOnCable(t)
	w := newWorld(t, func(s *settings) { s.pool = pool })
	c := w.client("acme:all")
	c.want("+OK\r\n", "SET", "lock:k", "tok", "NX", "PX", "600000")
	r, token := w.reserve()
	cold := w.key("acme:operator")

	way.Cut()
	for _, command := range []string{
		"SET lock:k tok NX PX 1000", "SET lock:k tok IFEQ tok PX 1000", "SET lock:k tok IFNE x PX 1000", "GET lock:k", "GET lock:none", "EXISTS lock:none", "TYPE lock:none", "TTL lock:k",
		"PTTL lock:none", "PEXPIRE lock:k 1000", "DEL lock:k", "DELEX lock:k IFEQ tok", "DELIFEQ lock:k tok", "DIGEST lock:k", "GET hold:" + string(r.ID), "PTTL hold:" + string(r.ID),
		"GET reason:" + string(r.ID), "DELEX hold:" + string(r.ID) + " IFEQ " + token,
	} {
		require.Regexp(t, "^-ERR the (database cannot be reached|connection broke)", c.do(strings.Split(command, " ")...), command)
	}
	require.Contains(t, dial(t, w.addr).do("AUTH", cold), "-ERR the database cannot be reached", "never a statement about the key")

	way.Mend()
	require.Eventually(t, func() bool { return c.do("GET", "lock:k") == "$3\r\ntok\r\n" }, patience, 10*time.Millisecond)
	c.want("$4\r\nheld\r\n", "GET", "hold:"+string(r.ID))
	c.want(":1\r\n", "DELEX", "lock:k", "IFEQ", "tok")
}

// A database that does not answer is an error too, after a while.
func TestDatabaseSilent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withLimits(redisport.Limits{Work: 100 * time.Millisecond}))
	c := w.client("acme:all")
	c.want("+OK\r\n", "SET", "lock:k", "tok", "NX", "PX", "600000")
	tx, err := w.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE locks`)
	require.NoError(t, err)
	for _, command := range []string{"GET lock:k", "SET lock:k x NX PX 1000", "DELEX lock:k IFEQ tok"} {
		require.Contains(t, c.do(strings.Split(command, " ")...), "-ERR the database cannot be reached", command)
	}
	require.NoError(t, tx.Rollback(t.Context()))
	c.want("$3\r\ntok\r\n", "GET", "lock:k")
}

// Keys, tokens and values stand in no log and in no answer but GET's, whatever goes wrong.
func TestNoSecretsInTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withDeps(func(d *redisport.Deps) { d.Locks = panicking{Locks: d.Locks} }))
	key := w.key("acme:orders")
	_, secret, _ := strings.Cut(key, "_")
	r, hold := w.reserve()
	c := w.client("acme:orders")
	for _, words := range [][]string{
		{"AUTH", key + "x"},
		{"AUTH", "rival", key},
		{"AUTH", "a", key, "b"},
		{"SET", "lock:k", "value-of-the-token", "NX", "PX", "1000"},
		{"SET", "lock:k", "value-of-the-token", "NX", "PX", "many"},
		{"DELEX", "lock:k", "IFEQ", "value-of-the-token", "more"},
		{"DEL", "lock:k"},
		{"DELEX", "hold:" + string(r.ID), "IFEQ", hold[:len(hold)-3]},
		{"DELEX", "hold:" + string(r.ID), "IFEQ", hold},
		{"GET", "lock:panic"},
	} {
		reply := c.do(words...)
		for _, hidden := range []string{secret, hold, "value-of-the-token"} {
			require.NotContains(t, reply, hidden, "%q", words)
		}
	}
	w.stop()
	require.NotEmpty(t, w.log.String())
	for _, hidden := range []string{secret[33:], hold[12:], "value-of-the-token"} {
		require.NotContains(t, w.log.String(), hidden)
		require.Zero(t, read[int](w, `SELECT count(*) FROM audit WHERE audit::text LIKE '%' || $1 || '%'`, hidden))
	}
}
