package httpapi

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// waiting is a readiness check that fails when its caller gives up.
type waiting struct{ entered chan struct{} }

func (w waiting) Ready(ctx context.Context) error {
	close(w.entered)
	<-ctx.Done()
	return ctx.Err()
}

// A caller that goes away is no fault of the service.
// Faults: F-N1.
func TestCallerThatGoesAway(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := waiting{make(chan struct{})}
	s, err := New(Deps{Log: slog.New(slog.NewJSONHandler(&log, nil)), Ready: w})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-w.entered
		cancel()
	}()
	s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody))
	require.Contains(t, log.String(), `"code":"caller_gone"`)
	require.Contains(t, log.String(), `"level":"INFO"`)
}
