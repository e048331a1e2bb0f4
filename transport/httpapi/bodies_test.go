package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A body is refused for its size and type before anything of it is parsed.
//
// Faults: F-H1.
func TestSizeAndTypeOfBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(1000)
	key := []string{"Idempotency-Key", "k"}
	with := func(body string, headers ...string) *answer {
		return w.post("acme:checkout", "/v1/reservations", body, append(headers, key...)...)
	}
	padded := order("1") + strings.Repeat(" ", 64<<10)
	with(padded).is(413, "too_large")
	with(padded[:64<<10]).is(201, "")
	with(padded, "Transfer-Encoding", "chunked").is(413, "too_large")

	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write(bytes.Repeat([]byte{' '}, 10<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	with(zipped.String(), "Content-Encoding", "gzip").is(415, "unsupported_media_type")

	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=latin1", "application/merge-patch+json", "nonsense/", ""} {
		with(order("1"), "Content-Type", kind).is(415, "unsupported_media_type")
	}
	with(order("1"), "Content-Type", "Application/JSON; charset=UTF-8").is(200, "")
	w.get("acme:checkout", "/v1/reservations").is(200, "")
	w.post("acme:orders", "/v1/reservations/res_01900000000070008000000000000000/renew", `{}`).is(400, "invalid_request")
	w.post("acme:support", "/v1/reservations/res_01900000000070008000000000000000/take-over", "").is(415, "unsupported_media_type")
	w.post("acme:support", "/v1/reservations/res_01900000000070008000000000000000/take-over", "", "Content-Type", "application/json").is(400, "invalid_request")
}

func TestKeysThatAreNotAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.key("acme:operator")
	for name, values := range map[string][]string{
		"nothing": nil, "no scheme": {good}, "another scheme": {"Basic " + good}, "an empty key": {"Bearer "}, "two keys": {"Bearer " + good, "Bearer " + good},
		"a wrong secret": {"Bearer " + good[:len(good)-1] + "g"}, "half a key": {"Bearer " + good[:40]}, "a blank too many": {"Bearer  " + good},
		"a key that nobody has": {"Bearer alk_01900000000070008000000000000000_" + strings.Repeat("0", 64)},
	} {
		a := w.do(call{method: "GET", path: "/v1/servers", header: http.Header{"Authorization": values}})
		require.Equal(t, 401, a.status, name)
		require.Equal(t, "unauthenticated", a.text("code"), name)
	}
	w.do(call{method: "GET", path: "/v1/servers", header: headersOf("Authorization", "BEARER "+good)}).is(200, "")
	w.do(call{method: "GET", path: "/v1/servers?key=" + good}).is(401, "unauthenticated")
}
