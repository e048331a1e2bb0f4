package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recordOf finds the one record that the log has of an answer.
func (w *world) recordOf(a *answer) map[string]any {
	w.t.Helper()
	var found []map[string]any
	for _, record := range w.log.records(w.t) {
		if record["request_id"] == a.header.Get("X-Request-ID") {
			found = append(found, record)
		}
	}
	require.Len(w.t, found, 1)
	return found[0]
}

func TestOneRecordPerCallAndNoSecretInIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(1000)
	a := w.reserve("acme:checkout", "1").is(201, "")
	record := w.recordOf(a)
	for name, want := range map[string]any{
		"msg": "request", "method": "POST", "route": "/v1/reservations", "organization": "acme",
		"order_id": "A-1", "reservation_id": a.text("id"), "decision_id": a.text("decision_id"), "client": "127.0.0.1",
	} {
		require.Equal(t, want, record[name], name)
	}
	require.EqualValues(t, 201, record["status"])
	w.act("acme:checkout", a.text("id"), "renew", "", "Hold-Token", a.text("hold_token")).is(200, "")
	refused := w.reserve("acme:checkout", "2").is(409, "no_capacity")
	require.Equal(t, []any{"no_capacity", refused.text("decision_id")}, []any{w.recordOf(refused)["code"], w.recordOf(refused)["decision_id"]})
	head := w.raw(call{who: "acme:all", method: "HEAD", path: "/v1/servers"})
	require.Equal(t, "HEAD", w.recordOf(head)["method"])
	unknown := w.raw(call{method: "GET", path: "/nothing%0a%7b%22status%22:200%7d"}).is(404, "not_found")
	require.EqualValues(t, 404, w.recordOf(unknown)["status"])

	for _, line := range w.log.records(t) {
		for _, value := range line {
			text, _ := value.(string)
			require.NotContains(t, text, a.text("hold_token"))
			require.NotContains(t, text, w.key("acme:checkout"))
			require.NotContains(t, text, "\n{")
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, "abc.DEF-1_2", w.do(call{method: "GET", path: "/livez", header: headersOf("X-Request-ID", "abc.DEF-1_2")}).header.Get("X-Request-ID"))
	for _, bad := range [][]string{{"a b"}, {"a\tb"}, {`a"b`}, {"ü"}, {strings.Repeat("a", 101)}, {"a", "b"}, {""}} {
		got := w.do(call{method: "GET", path: "/livez", header: http.Header{"X-Request-ID": bad}}).header.Get("X-Request-ID")
		require.Len(t, got, 36, "%q", bad)
	}
}
