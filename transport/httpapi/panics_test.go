package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// struck makes the driver panic in a marked request where it is about to commit what the request wrote, or to send what is
// written and committed in one go.
type struck struct {
	armed atomic.Bool
	hits  atomic.Int64
}

type strikeKey struct{}

var (
	begins  = regexp.MustCompile(`(?i)^BEGIN\b`)
	reads   = regexp.MustCompile(`(?i)^BEGIN READ ONLY\b`)
	commits = regexp.MustCompile(`(?i)^COMMIT$`)
	writes  = regexp.MustCompile(`(?i)\b(INSERT\s+INTO|DELETE\s+FROM|UPDATE\s+\S+\s+(\S+\s+)?SET)\b`)
)

func (s *struck) strikeIf(ctx context.Context, commits bool) {
	if commits && s.armed.Load() && ctx.Value(strikeKey{}) != nil {
		s.hits.Add(1)
		panic("struck by lightning")
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *struck) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.strikeIf(ctx, strings.EqualFold(data.SQL, "commit"))
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*struck) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (s *struck) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	goes := func(pattern *regexp.Regexp) bool {
		return slices.ContainsFunc(data.Batch.QueuedQueries, func(q *pgx.QueuedQuery) bool { return pattern.MatchString(q.SQL) })
	}
	alone := conn.PgConn().TxStatus() == 'I' && !goes(begins) && goes(writes)
	s.strikeIf(ctx, !goes(reads) && (alone || goes(commits)))
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*struck) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*struck) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// Whatever route writes, a panic behind its writes and before its answer leaves nothing of them: 500 with the request's
// id, every row as it was, no connection kept, and the same call, with the same key, succeeds afterwards.
//
// Cases: OP-09. Faults: F-C9.
func TestPanicInEveryRouteThatWrites(t *testing.T) {
	t.Parallel()
	s := &struck{}
	config, err := pgxpool.ParseConfig(postgrestest.URL(t))
	require.NoError(t, err)
	config.ConnConfig.Tracer = s
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { go pool.Close() }) // it would wait for a connection that is kept
	w := newWorldOn(t, pool, postgres.NewHealth(pool))
	w.server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		w.door.Handler().ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), strikeKey{}, true)))
	}))
	t.Cleanup(w.server.Close)

	var spared []string
	for _, r := range w.spec.routes {
		if r.method == http.MethodGet {
			continue
		}
		w.turn("acme", true)
		c := recipes[r.id].make(w)
		c.who = "acme:all"
		w.key(c.who)
		before, hits, listening := w.everyRow(), s.hits.Load(), pool.Stat().AcquiredConns()
		s.armed.Store(true)
		a := w.do(c)
		s.armed.Store(false)
		if s.hits.Load() == hits {
			spared = append(spared, r.id)
			continue
		}
		require.Equal(t, 500, a.status, "%s: %s", r.id, a.body)
		require.NotEmpty(t, a.is(500, "internal").text("request_id"))
		require.NotContains(t, string(a.body), "lightning")
		require.Equal(t, before, w.everyRow(), r.id)
		require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() <= listening }, 30*time.Second, time.Millisecond, "%s keeps a connection", r.id)
		w.do(c).is(recipes[r.id].want, "")
	}
	require.ElementsMatch(t, []string{"evaluate", "runJob", "acquireLock", "renewLock", "releaseLock"}, spared, "these write nothing, or by one statement")
	w.get("", "/livez").is(200, "")
}

// everyRow is a sum over each table.
func (w *world) everyRow() map[string]string {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
		AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT LIKE 'river%'`)
	require.NoError(w.t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	sums := map[string]string{}
	for _, table := range tables {
		var sum string
		require.NoError(w.t, w.pool.QueryRow(w.t.Context(), `SELECT coalesce(md5(string_agg(t::text, chr(10) ORDER BY t::text)), '') FROM `+table+` t`).Scan(&sum))
		sums[table] = sum
	}
	return sums
}
