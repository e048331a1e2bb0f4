package redisport_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/locking"
	"allocator/store/postgres/postgrestest"
)

// Each command about a lock is one statement and one trip, whatever its options and whether it succeeds; so is each look at
// a hold or a reason. Cancelling a hold is that of the HTTP door, a transaction.
//
// Requirements: L19, D04, D08.
func TestEachCommandIsOneStatement(t *testing.T) {
	t.Parallel()
	seen := &statements{}
	config, err := pgxpool.ParseConfig(postgrestest.URL(t))
	require.NoError(t, err)
	config.ConnConfig.Tracer = seen
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	w := newWorld(t, func(s *settings) { s.pool = pool })
	c, admin := w.client("acme:checkout,orders,operator,support"), w.client("acme:admin")
	r, token := w.reserve()
	hold, reason := "hold:"+string(r.ID), "reason:"+string(r.ID)
	digest := fmt.Sprintf("%016x", locking.Digest("b"))
	for _, step := range []struct {
		by             *wire
		command, reply string
	}{
		{c, "GET lock:k", "$-1\r\n"},
		{c, "SET lock:k a NX PX 60000", "+OK\r\n"},
		{c, "SET lock:k b NX EX 60", "$-1\r\n"},
		{c, "SET lock:k b NX GET PX 60000", "$1\r\na\r\n"},
		{c, "SET lock:k b XX KEEPTTL", "+OK\r\n"},
		{c, "SET lock:k b IFEQ b PX 60000", "+OK\r\n"},
		{c, "SET lock:k b IFEQ a PX 60000", "$-1\r\n"},
		{c, "SET lock:k b IFNE b PX 60000", "$-1\r\n"},
		{c, "SET lock:k b IFDEQ " + digest + " PXAT 32503680000000", "-ERR "},
		{c, "SET lock:k b IFDEQ " + digest + " PX 60000", "+OK\r\n"},
		{c, "SET lock:k b IFDNE " + digest + " PX 60000", "$-1\r\n"},
		{c, "GET lock:k", "$1\r\nb\r\n"},
		{c, "EXISTS lock:k lock:none lock:k", ":2\r\n"},
		{c, "TYPE lock:k", "+string\r\n"},
		{c, "TTL lock:k", ":"},
		{c, "PTTL lock:k", ":"},
		{c, "DIGEST lock:k", "$16\r\n" + digest + "\r\n"},
		{c, "EXPIRE lock:k 60", ":1\r\n"},
		{c, "PEXPIRE lock:k 60000 GT", ":"},
		{c, "PEXPIRE lock:none 60000", ":0\r\n"},
		{c, "DELEX lock:k IFEQ a", ":0\r\n"},
		{c, "DELIFEQ lock:k a", ":0\r\n"},
		{c, "DELEX lock:k IFDEQ " + digest, ":1\r\n"},
		{c, "SET lock:k a PX 60000", "+OK\r\n"},
		{c, "DELIFEQ lock:k a", ":1\r\n"},
		{c, "SET lock:k a PX 60000", "+OK\r\n"},
		{c, "DELEX lock:k IFEQ a", ":1\r\n"},
		{admin, "DELEX lock:k IFNE a", ":0\r\n"},
		{admin, "DELEX lock:k", ":0\r\n"},
		{admin, "DEL lock:k lock:l", ":0\r\n"},
		{admin, "PEXPIRE lock:k 0", ":0\r\n"},
		{c, "GET " + hold, "$4\r\nheld\r\n"},
		{c, "PTTL " + hold, ":"},
		{c, "DIGEST " + reason, "$16\r\n"},
	} {
		seen.forget()
		reply := step.by.do(strings.Split(step.command, " ")...)
		require.True(t, strings.HasPrefix(reply, step.reply), "%s: %q", step.command, reply)
		if strings.HasPrefix(reply, "-") {
			require.Empty(t, seen.texts(), "%s: refused before anything is asked", step.command)
			continue
		}
		require.Len(t, seen.texts(), 1, step.command)
	}
	seen.forget()
	c.want(":1\r\n", "DELEX", hold, "IFEQ", token)
	require.Greater(t, len(seen.texts()), 1)
	for _, command := range []string{"PING", "ECHO x", "SELECT 0", "CLIENT ID", "INFO", "COMMAND"} {
		seen.forget()
		c.do(strings.Split(command, " ")...)
		require.Empty(t, seen.texts(), command)
	}
}

// statements notes what a pool sends, but for the key of the connection, which is looked up anew every few seconds.
type statements struct {
	mu   sync.Mutex
	sent []string
}

func (s *statements) add(sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(sql, "FROM api_keys") {
		s.sent = append(s.sent, sql)
	}
}

func (s *statements) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = nil
}

func (s *statements) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.add(data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, query := range data.Batch.QueuedQueries {
		s.add(query.SQL)
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
