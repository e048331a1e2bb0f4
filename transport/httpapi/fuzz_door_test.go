package httpapi_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzRawHTTP sends any bytes at all to the listening socket: whatever is answered is HTTP, and never a failure of the
// service; and the service goes on.
//
// Faults: F-H1, F-H2, F-H5.
func FuzzRawHTTP(f *testing.F) {
	w := newWorld(f)
	w.addServer(4096)
	key := w.key("acme:checkout")
	auth := "Host: x\r\nAuthorization: Bearer " + key + "\r\n"
	for _, seed := range []string{
		"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "\r\n\r\n", "\x00", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"POST /v1/reservations HTTP/1.1\r\n" + auth + "Content-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}",
		"POST /v1/reservations HTTP/1.1\r\n" + auth + "Content-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 33\r\n\r\n{\"order_id\":\"a\",\"order_line\":\"1\"}",
		"POST /v1/reservations HTTP/1.1\r\n" + auth + "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"POST /v1/reservations HTTP/1.1\r\n" + auth + "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"POST /v1/reservations HTTP/1.1\r\n" + auth + "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"POST /v1/reservations HTTP/1.1\r\n" + auth + "Content-Length: 100\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n\r\n{}",
		"GET /v1/reservations?page_token=%00&page_size=-1 HTTP/1.1\r\n" + auth + "\r\n", "GET //v1/../v1/servers HTTP/1.1\r\n" + auth + "\r\n",
		"GET /v1/servers HTTP/1.1\r\n" + auth + "Prefer: wait=9223372036854775808\r\nIf-Match: *\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", "TRACE / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	address := strings.TrimPrefix(w.server.URL, "http://")
	f.Fuzz(func(t *testing.T, request []byte) {
		// Half a connection that is closed ends what would wait for more, and looks like a caller who has gone: what was not
		// answered for that is asked once more by one who stays, and was a whole request.
		first, ended := statuses(t, address, request, 1000, true)
		for i, status := range first {
			if status == http.StatusServiceUnavailable {
				first, ended = statuses(t, address, request, i+1, false)
				break
			}
		}
		for _, status := range first {
			// What Go's server has no words for it calls 501 and 505 before anything of ours is asked.
			if status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported {
				require.Less(t, status, 500, "%q", request)
			}
		}
		require.True(t, ended, "%q: no answer and no end", request)
	})
}

// statuses sends a request's bytes on a connection of their own and reads up to so many answers.
func statuses(t *testing.T, address string, request []byte, most int, closing bool) (all []int, ended bool) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute))) // against hanging alone
	_, _ = conn.Write(request)                                        // it may have been refused before the end
	if closing {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	answers := bufio.NewReader(conn)
	for len(all) < most {
		answer, err := http.ReadResponse(answers, nil)
		if err != nil { // the end, or a request that was never finished
			return all, !errors.Is(err, os.ErrDeadlineExceeded)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		all = append(all, answer.StatusCode)
	}
	return all, true
}

// FuzzPath puts any text into the places of ids in paths and into queries: it is unknown or refused, never a failure, and
// never a word of SQL.
//
// Cases: AP-01, AP-03. Faults: F-H3.
func FuzzPath(f *testing.F) {
	w := newWorld(f)
	w.key("acme:all")
	for _, seed := range []string{"a", "\x00", "a/b", "a%2Fb", "..", ".", "", "%", "\xff\xfe", "\u202e", "ä", "a\u0308", "😀", "srv_0123456789abcdef0123456789abcdef", "SRV_0123456789ABCDEF0123456789ABCDEF", strings.Repeat("x", 5000), "'; DROP TABLE servers; --", "?x=1", "#", "\r\nX: y", "\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		one := &world{t: t, server: w.server, bearer: w.bearer}
		for _, path := range []string{
			"/v1/orders/%s", "/v1/servers/%s", "/v1/reservations/%s", "/v1/decisions/%s", "/v1/decisions/%s/candidates", "/v1/bindings/%s", "/v1/keys/%s", "/v1/flags/%s",
			"/v1/reservations?order_id=%s", "/v1/reservations?page_token=%s", "/v1/reservations?state=%s", "/v1/servers?site=%s", "/v1/audit?after=%s", "/v1/leases?resource=%s", "/v1/locks?key=%s", "/%s",
		} {
			before, query, _ := strings.Cut(path, "?")
			escaped := url.PathEscape(text)
			if strings.Trim(text, ".") == "" { // a client would take these as directions
				escaped = strings.ReplaceAll(text, ".", "%2E")
			}
			target := strings.Replace(before, "%s", escaped, 1)
			if query != "" {
				target += "?" + strings.Replace(query, "%s", url.QueryEscape(text), 1)
			}
			a := one.raw(call{who: "acme:all", method: http.MethodGet, path: target})
			require.Less(t, a.status, 500, "%q: %s", target, a.body)
			require.NotContains(t, string(a.body), "SQLSTATE")
			require.NotContains(t, string(a.body), "ERROR:")
		}
	})
}

// FuzzIdempotencyKey holds that every key of 1 to 255 visible characters makes one reservation, and no other text any.
//
// Faults: F-K8.
func FuzzIdempotencyKey(f *testing.F) {
	w := newWorld(f)
	w.key("acme:checkout")
	for _, seed := range []string{"k", "", " k", "k ", "a b", "a\tb", "ü", "\x7f", "~", "!", `"quoted"`, strings.Repeat("k", 255), strings.Repeat("k", 256), "k,k", "\u00a0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if strings.ContainsAny(key, "\r\n\x00") || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return // no header of any client: FuzzRawHTTP sends such
		}
		one := &world{t: t, server: w.server, bearer: w.bearer}
		a := one.raw(call{who: "acme:checkout", method: http.MethodPost, path: "/v1/reservations", body: order("fuzz"), header: headersOf("Idempotency-Key", key)})
		trimmed := strings.Trim(key, " \t") // blanks around a value are none of it, by HTTP
		if len(trimmed) > 0 && len(trimmed) <= 255 && visible(trimmed) {
			a.is(409, "no_capacity")
		} else {
			a.is(400, "idempotency_key_invalid")
		}
	})
}
