package redistest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
)

// urlEnv names a server to be used by tests instead of one that they start. It is not stopped or emptied: tests use
// keys of their own.
const urlEnv = "REDIS_URL"

// shared is the one server of this test binary.
var shared = sync.OnceValues(func() (*Server, error) { return newServer(context.Background()) })

// URL returns the address of a Redis that other tests use at the same time.
func URL(tb testing.TB) string {
	tb.Helper()
	if given := os.Getenv(urlEnv); given != "" {
		return given
	}
	server, err := shared()
	fail(tb, err)
	return server.URL()
}

// Start starts a server of the test's own, which may be stopped and started again and ends with the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	server, err := newServer(tb.Context())
	fail(tb, err)
	tb.Cleanup(server.Stop)
	return server
}

func fail(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case errors.Is(err, errNoProgram):
		tb.Skip("skipped: " + err.Error())
	case err != nil:
		tb.Fatal(err)
	}
}
