package httpapi_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// A database that is away is 503 for everybody, never a statement about the key.
// Faults: F-L5.
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
	w.get("acme:all", "/v1/capacity").is(200, "")
	cold := w.key("acme:operator")
	way.cutNow()
	a := w.do(call{method: "GET", path: "/v1/servers", header: headersOf("Authorization", "Bearer "+cold)}).is(503, "unavailable")
	require.Contains(t, []string{"1", "2", "3"}, a.header.Get("Retry-After"))
	w.do(call{method: "GET", path: "/v1/servers", header: headersOf("Authorization", "Bearer "+warm)}).is(503, "unavailable")
	w.get("acme:all", "/v1/capacity").is(503, "unavailable") // and not what was known before
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

// Cases: OP-09. Faults: F-C9.
func TestPanicsAndFaultsStayInside(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, postgrestest.New(t), broken{panics: true})
	a := w.get("", "/readyz").is(500, "internal")
	require.NotContains(t, string(a.body), "secret")
	w.get("", "/livez").is(200, "")
	record := w.recordOf(a)
	require.Contains(t, record["error"], "secret of the program")
	require.Contains(t, record["error"], "service.go", "the stack")

	w = newWorldOn(t, postgrestest.New(t), broken{})
	a = w.get("", "/readyz").is(503, "unavailable")
	require.NotContains(t, string(a.body), "secret")
	require.Contains(t, w.recordOf(a)["error"], "secret of the database")
}
