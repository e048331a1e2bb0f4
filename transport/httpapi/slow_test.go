package httpapi

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client that sends its header a byte at a time is cut off, and others are served meanwhile.
//
// Faults: F-N4.
func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	address, stop, served := serve(t, Deps{Log: quiet()})
	slow, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = slow.Close() }()
	_, err = slow.Write([]byte("GET /livez HTTP/1.1\r\nHost: x\r\n"))
	require.NoError(t, err)

	res, err := http.Get("http://" + address + "/livez")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)

	require.NoError(t, slow.SetReadDeadline(time.Now().Add(6*readHeaderTimeout))) // against hanging alone
	_, err = io.ReadAll(slow)
	require.NoError(t, err, "the connection is closed, not left open")
	stop()
	require.NoError(t, <-served)
}
