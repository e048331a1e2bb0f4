package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A request whose end two servers would see in two places is refused, or is the last one of its connection: what comes
// behind it is never taken for another request. A wish for another protocol is not granted.
//
// Faults: F-H5.
func TestRequestsThatTwoServersReadInTwoWays(t *testing.T) {
	t.Parallel()
	address, stop, served := serve(t, Deps{Log: quiet()})
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
	})
	const smuggled = "GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
	tests := map[string]struct {
		request string
		status  int  // of the first answer
		stays   bool // the connection may be used for another request
	}{
		"a plain one":                        {"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", 200, true},
		"a length and chunks":                {"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 405, false},
		"chunks and a length":                {"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 100\r\n\r\n0\r\n\r\n", 405, false},
		"two lengths":                        {"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\n", 400, false},
		"a length with a sign":               {"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n", 400, false},
		"an encoding nobody has":             {"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", 501, false},
		"an encoding with a tab before it":   {"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", 400, false},
		"an encoding said twice":             {"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 501, false},
		"a space before the colon":           {"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length : 40\r\n\r\n", 400, false},
		"a header that is folded":            {"POST /livez HTTP/1.1\r\nHost: x\r\nX: a\r\n Content-Length: 40\r\n\r\n", 405, true},
		"a header that begins with a space":  {"POST /livez HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n", 400, false},
		"no host":                            {"GET /livez HTTP/1.1\r\n\r\n", 400, false},
		"two hosts":                          {"GET /livez HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400, false},
		"a zero byte in a header":            {"GET /livez HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", 400, false},
		"a wish for HTTP/2 in plain text":    {"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", 200, true},
		"HTTP/2 without asking":              {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404, false},
		"a body of chunks with bare newline": {"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", 405, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", address)
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute))) // against hanging alone
			_, err = io.WriteString(conn, tt.request+smuggled)
			require.NoError(t, err)
			reader := bufio.NewReader(conn)
			first, err := http.ReadResponse(reader, nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, first.Body)
			require.NoError(t, err)
			require.NoError(t, first.Body.Close())
			require.Equal(t, tt.status, first.StatusCode)
			require.Empty(t, first.Header.Get("Upgrade"))
			if tt.stays {
				second, err := http.ReadResponse(reader, nil)
				require.NoError(t, err)
				require.NoError(t, second.Body.Close())
				return
			}
			rest, _ := io.ReadAll(reader) // a reset is a close, too
			require.NotContains(t, string(rest), "HTTP/1.1 200", "what came behind was answered")
		})
	}
}
