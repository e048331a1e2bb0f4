package client

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A service that begins a list and then says nothing is given up; the caller's own time with a line does not count. The whole has
// no limit, unlike other calls.
func TestListThatFallsSilent(t *testing.T) {
	t.Parallel()
	more, release := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", linesType)
		for _, line := range []string{"{\"summary\":{\"counts\":[]}}\n", "{\"ranked\":{\"rank\":1}}\n"} {
			_, _ = w.Write([]byte(line))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-more:
			case <-release:
			}
		}
		<-release
	}))
	defer service.Close()
	defer close(release)
	api, err := New(service.URL, "alk_x")
	require.NoError(t, err)
	const patience = 4 * time.Second // generous to the service: it bounds what it needs for a line
	lines := 0
	var last error
	for _, err := range api.evaluateInFull(t.Context(), EvaluationRequest{}, patience) {
		if last = err; err == nil {
			if lines++; lines == 1 {
				<-time.After(patience + time.Second) // not the service's silence
				more <- struct{}{}                   // the next line comes only now
			}
		}
	}
	require.ErrorIs(t, last, ErrCutShort)
	require.ErrorContains(t, last, "nothing came for 4s")
	require.Equal(t, 2, lines)

	asking := api.ClientInterface.(*Client).Client.(*refusing)
	require.Zero(t, asking.unhurried.(*http.Client).Timeout)
	require.Equal(t, timeout, asking.next.(*http.Client).Timeout)
}
