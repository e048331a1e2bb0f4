package httpapi_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
	"allocator/transport/httpapi"
)

// A database that is away is 503 for everybody, never a statement about the key.
// Faults: F-L5.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	pool, way := postgrestest.NewOnCable(t)
	w := newWorldOn(t, pool, postgres.NewHealth(pool))
	warm := w.key("acme:all")
	w.get("acme:all", "/v1/servers").is(200, "")
	w.get("acme:all", "/v1/capacity").is(200, "")
	cold := w.key("acme:operator")
	way.Cut()
	a := w.do(call{method: "GET", path: "/v1/servers", header: headersOf("Authorization", "Bearer "+cold)}).is(503, "unavailable")
	require.Contains(t, []string{"1", "2", "3"}, a.header.Get("Retry-After"))
	w.do(call{method: "GET", path: "/v1/servers", header: headersOf("Authorization", "Bearer "+warm)}).is(503, "unavailable")
	w.get("acme:all", "/v1/capacity").is(503, "unavailable") // and not what was known before
	w.post("acme:all", "/v1/reservations", order("1"), "Idempotency-Key", "k").is(503, "unavailable")
	w.get("", "/readyz").is(503, "unavailable")
	w.get("", "/livez").is(200, "")
}

// broken is a readiness check that fails in the worst ways.
type broken struct{ panics bool }

func (b broken) Ready(context.Context) error {
	if b.panics {
		panic("secret of the program")
	}
	return errors.New("secret of the database")
}

// starting is a process that is well and not there yet.
type starting struct{}

func (starting) Ready(context.Context) error {
	return httpapi.NotYetError("three of five inventories are read")
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

	w = newWorldOn(t, postgrestest.New(t), starting{})
	a = w.get("", "/readyz").is(503, "unavailable")
	require.Contains(t, string(a.body), "three of five inventories")
}
