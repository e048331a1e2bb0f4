package httpapi

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Faults: F-N4. A client that sends its header a byte at a time is cut off, and others are served meanwhile.
func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	s, err := New(Deps{Log: quiet()})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	slow, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = slow.Close() }()
	_, err = slow.Write([]byte("GET /livez HTTP/1.1\r\nHost: x\r\n"))
	require.NoError(t, err)

	res, err := http.Get("http://" + listener.Addr().String() + "/livez")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)

	require.NoError(t, slow.SetReadDeadline(time.Now().Add(6*readHeaderTimeout))) // against hanging alone
	_, err = io.ReadAll(slow)
	require.NoError(t, err, "the connection is closed, not left open")
	cancel()
	require.NoError(t, <-served)
}
