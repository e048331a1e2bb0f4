package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// Every error is problem+json: the router's own, and those of methods and bodies.
func TestErrorsOfTheRouterAreProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/nothing", "/v1/servers/", "/v1/reservations/x/y/z", "/V1/servers", "//v1/servers"} {
		a := w.raw(call{who: "acme:all", method: "GET", path: path}).is(404, "not_found")
		require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), path)
		require.NotEmpty(t, a.text("request_id"))
	}
	a := w.raw(call{who: "acme:all", method: "DELETE", path: "/v1/servers"}).is(405, "method_not_allowed")
	for _, method := range []string{"GET", "POST", "HEAD"} {
		require.Contains(t, a.header.Get("Allow"), method)
	}
	w.raw(call{method: "TRACE", path: "/v1/servers"}).is(405, "method_not_allowed")
	w.raw(call{method: "BREW", path: "/v1/servers"}).is(405, "method_not_allowed")
}

func TestHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string]int{
		"/livez": 200, "/v1/servers": 200, "/v1/servers/" + w.addServer(1): 200, "/v1/servers/srv_0": 404, "/v1/nothing": 404, "/v1/evaluations": 405,
	} {
		a := w.raw(call{who: "acme:all", method: "HEAD", path: path})
		require.Equal(t, want, a.status, path)
		require.Empty(t, a.body)
	}
	require.NotEmpty(t, w.raw(call{method: "HEAD", path: "/v1/servers"}).header.Get("WWW-Authenticate"))
}

// Faults: F-H1. A body is refused for its size and type before anything of it is parsed.
func TestSizeAndTypeOfBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(1000)
	key := []string{"Idempotency-Key", "k"}
	with := func(body string, headers ...string) *answer {
		return w.post("acme:checkout", "/v1/reservations", body, append(headers, key...)...)
	}
	padded := order("1") + strings.Repeat(" ", 64<<10)
	with(padded).is(413, "too_large")
	with(padded[:64<<10]).is(201, "")
	with(padded, "Transfer-Encoding", "chunked").is(413, "too_large")

	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write(bytes.Repeat([]byte{' '}, 10<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	with(zipped.String(), "Content-Encoding", "gzip").is(415, "unsupported_media_type")

	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=latin1", "application/merge-patch+json", "nonsense/", ""} {
		with(order("1"), "Content-Type", kind).is(415, "unsupported_media_type")
	}
	with(order("1"), "Content-Type", "Application/JSON; charset=UTF-8").is(200, "")
	w.get("acme:checkout", "/v1/reservations").is(200, "")
	w.post("acme:orders", "/v1/reservations/res_01900000000070008000000000000000/renew", `{}`).is(400, "invalid_request")
	w.post("acme:support", "/v1/reservations/res_01900000000070008000000000000000/take-over", "").is(415, "unsupported_media_type")
	w.post("acme:support", "/v1/reservations/res_01900000000070008000000000000000/take-over", "", "Content-Type", "application/json").is(400, "invalid_request")
}

func TestKeysThatAreNotAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.key("acme:operator")
	for name, values := range map[string][]string{
		"nothing": nil, "no scheme": {good}, "another scheme": {"Basic " + good}, "an empty key": {"Bearer "}, "two keys": {"Bearer " + good, "Bearer " + good},
		"a wrong secret": {"Bearer " + good[:len(good)-1] + "g"}, "half a key": {"Bearer " + good[:40]}, "a blank too many": {"Bearer  " + good},
		"a key that nobody has": {"Bearer alk_01900000000070008000000000000000_" + strings.Repeat("0", 64)},
	} {
		a := w.do(call{method: "GET", path: "/v1/servers", header: http.Header{"Authorization": values}})
		require.Equal(t, 401, a.status, name)
		require.Equal(t, "unauthenticated", a.text("code"), name)
	}
	w.do(call{method: "GET", path: "/v1/servers", header: headersOf("Authorization", "BEARER "+good)}).is(200, "")
	w.do(call{method: "GET", path: "/v1/servers?key=" + good}).is(401, "unauthenticated")
}

// A database that is away is 503 for everybody, never a statement about the key.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(postgrestest.URL(t))
	require.NoError(t, err)
	way := &cable{}
	config.ConnConfig.DialFunc = way.dial
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	w := newWorldOn(t, pool, postgres.NewHealth(pool))
	warm := w.key("acme:all")
	w.get("acme:all", "/v1/servers").is(200, "")
	cold := w.key("acme:operator")
	way.cutNow()
	a := w.do(call{method: "GET", path: "/v1/servers", header: headersOf("Authorization", "Bearer "+cold)}).is(503, "unavailable")
	require.Contains(t, []string{"1", "2", "3"}, a.header.Get("Retry-After"))
	w.do(call{method: "GET", path: "/v1/servers", header: headersOf("Authorization", "Bearer "+warm)}).is(503, "unavailable")
	w.post("acme:all", "/v1/reservations", order("1"), "Idempotency-Key", "k").is(503, "unavailable")
	w.get("", "/readyz").is(503, "unavailable")
	w.get("", "/livez").is(200, "")
}

// cable is the way to the database, and can be cut.
type cable struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (c *cable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("no route to host")}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	c.conns = append(c.conns, conn)
	return conn, err
}

func (c *cable) cutNow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close() // may be closed already
	}
}

// broken is a readiness check that fails in the worst ways.
type broken struct{ panics bool }

func (b broken) Ready(context.Context) error {
	if b.panics {
		panic("secret of the program")
	}
	return errors.New("secret of the database")
}

func TestPanicsAndFaultsStayInside(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, postgrestest.New(t), broken{panics: true})
	a := w.get("", "/readyz").is(500, "internal")
	require.NotContains(t, string(a.body), "secret")
	w.get("", "/livez").is(200, "")
	record := w.recordOf(a)
	require.Contains(t, record["error"], "secret of the program")
	require.Contains(t, record["error"], "transport_test.go", "the stack")

	w = newWorldOn(t, postgrestest.New(t), broken{})
	a = w.get("", "/readyz").is(503, "unavailable")
	require.NotContains(t, string(a.body), "secret")
	require.Contains(t, w.recordOf(a)["error"], "secret of the database")
}

// recordOf finds the one record that the log has of an answer.
func (w *world) recordOf(a *answer) map[string]any {
	w.t.Helper()
	var found []map[string]any
	for _, record := range w.log.records(w.t) {
		if record["request_id"] == a.header.Get("X-Request-ID") {
			found = append(found, record)
		}
	}
	require.Len(w.t, found, 1)
	return found[0]
}

func TestOneRecordPerCallAndNoSecretInIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(1000)
	a := w.reserve("acme:checkout", "1").is(201, "")
	record := w.recordOf(a)
	for name, want := range map[string]any{
		"msg": "request", "method": "POST", "route": "/v1/reservations", "organization": "acme",
		"order_id": "A-1", "reservation_id": a.text("id"), "decision_id": a.text("decision_id"), "client": "127.0.0.1",
	} {
		require.Equal(t, want, record[name], name)
	}
	require.EqualValues(t, 201, record["status"])
	w.act("acme:checkout", a.text("id"), "renew", "", "Hold-Token", a.text("hold_token")).is(200, "")
	refused := w.reserve("acme:checkout", "2").is(409, "no_capacity")
	require.Equal(t, []any{"no_capacity", refused.text("decision_id")}, []any{w.recordOf(refused)["code"], w.recordOf(refused)["decision_id"]})
	head := w.raw(call{who: "acme:all", method: "HEAD", path: "/v1/servers"})
	require.Equal(t, "HEAD", w.recordOf(head)["method"])
	unknown := w.raw(call{method: "GET", path: "/nothing%0a%7b%22status%22:200%7d"}).is(404, "not_found")
	require.EqualValues(t, 404, w.recordOf(unknown)["status"])

	for _, line := range w.log.records(t) {
		for _, value := range line {
			text, _ := value.(string)
			require.NotContains(t, text, a.text("hold_token"))
			require.NotContains(t, text, w.key("acme:checkout"))
			require.NotContains(t, text, "\n{")
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, "abc.DEF-1_2", w.do(call{method: "GET", path: "/livez", header: headersOf("X-Request-ID", "abc.DEF-1_2")}).header.Get("X-Request-ID"))
	for _, bad := range [][]string{{"a b"}, {"a\tb"}, {`a"b`}, {"ü"}, {strings.Repeat("a", 101)}, {"a", "b"}, {""}} {
		got := w.do(call{method: "GET", path: "/livez", header: http.Header{"X-Request-ID": bad}}).header.Get("X-Request-ID")
		require.Len(t, got, 36, "%q", bad)
	}
}

func TestProblemPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page := w.get("", "/problems/no_capacity").is(200, "")
	require.Contains(t, page.header.Get("Content-Type"), "text/html")
	require.Contains(t, string(page.body), "no_capacity")
	require.Contains(t, page.header.Get("Content-Security-Policy"), "default-src 'none'")
	for accept, kind := range map[string]string{
		"application/json": "application/json", "text/html,application/xhtml+xml,*/*;q=0.8": "text/html", "*/*": "text/html", "application/json;q=0.5,text/html;q=0.4": "application/json",
		"application/*;q=1,text/*;q=0.1": "application/json", "application/json;q=nonsense": "text/html",
	} {
		a := w.do(call{method: "GET", path: "/problems/no_capacity", header: headersOf("Accept", accept)}).is(200, "")
		require.Contains(t, a.header.Get("Content-Type"), kind, accept)
	}
	w.get("", "/problems/nonsense").is(404, "not_found")
	w.get("", "/problems/..%2f..%2fetc").is(404, "not_found")
	refused := w.get("", "/v1/servers").is(401, "unauthenticated")
	w.get("", refused.text("type")).is(200, "")
	require.Equal(t, "1.2.3-test", w.get("", "/version").is(200, "").text("version"))
}
