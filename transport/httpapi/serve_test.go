package httpapi

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// gate is a readiness check that waits until it is let go, so that a test has a request under way.
type gate struct {
	entered chan struct{}
	leave   chan struct{}
}

func (g gate) Ready(context.Context) error {
	close(g.entered)
	<-g.leave
	return nil
}

// serve serves at an address of this machine until it is told to stop, or the test ends, and then says how that went.
func serve(t *testing.T, deps Deps) (address string, stop func(), served <-chan error) {
	t.Helper()
	s, err := New(deps)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	return listener.Addr().String(), cancel, done
}

// A request that is under way when the process is told to end is finished, and Serve ends in order.
// Faults: F-C3.
func TestServeFinishesWhatItBegan(t *testing.T) {
	t.Parallel()
	g := gate{make(chan struct{}), make(chan struct{})}
	address, stop, served := serve(t, Deps{Log: quiet(), Ready: g})

	status := make(chan int, 1)
	go func() {
		res, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			status <- 0
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		status <- res.StatusCode
	}()
	<-g.entered
	stop()
	for { // until nobody new is let in
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		require.NoError(t, conn.Close())
	}
	select {
	case err := <-served:
		t.Fatalf("Serve ended with a request under way: %v", err)
	default:
	}
	close(g.leave)
	require.Equal(t, http.StatusOK, <-status)
	require.NoError(t, <-served)
}

func TestServeReportsABrokenListener(t *testing.T) {
	t.Parallel()
	s, err := New(Deps{Log: quiet()})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.Error(t, s.Serve(t.Context(), listener))
}

// While it is going away the process says so, and takes no new work but goes on telling about itself.
func TestDrainingIsToldAndThenEnforced(t *testing.T) {
	t.Parallel()
	s, err := New(Deps{Log: quiet()})
	require.NoError(t, err)
	get := func(path string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return rec
	}
	s.draining.Store(true)
	require.Equal(t, 503, get("/readyz").Code)
	require.Equal(t, 401, get("/v1/servers").Code, "it still serves")
	s.closing.Store(true)
	refused := get("/v1/servers")
	require.Equal(t, 503, refused.Code)
	require.Contains(t, refused.Body.String(), `"code":"unavailable"`)
	require.Equal(t, "close", refused.Header().Get("Connection"))
	require.NotEmpty(t, refused.Header().Get("Retry-After"))
	require.Equal(t, 200, get("/livez").Code)
}
