package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Queries are as strict as bodies.
//
// Cases: AP-01. Faults: F-H4.
func TestQueriesAreReadStrictly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, want := range map[string]string{
		"organization_id=rival":          "query:organization_id",
		"State=held":                     "query:State",
		"page_size=1&page_size=2":        "query:page_size",
		"page_size=0":                    "query:page_size",
		"page_size=-1":                   "query:page_size",
		"page_size=1e9":                  "query:page_size",
		"page_size=5.0":                  "query:page_size",
		"page_size=%2B5":                 "query:page_size",
		"page_size=":                     "query:page_size",
		"page_size=99999999999999999999": "query:page_size",
		"page_token=nonsense":            "query:page_token",
		"page_token=":                    "query:page_token",
		"state=sold":                     "query:state",
		"state=held,expired":             "query:state",
		"server_id=srv_1":                "query:server_id",
		"order_id=":                      "query:order_id",
		"order_id=%00":                   "query:order_id",
		"order_id=%FF":                   "query:order_id",
		"expires_before=tomorrow":        "query:expires_before",
		"expires_before=2026-01-01":      "query:expires_before",
		"%zz":                            "query:",
		"a;b":                            "query:",
	} {
		a := w.get("acme:support", "/v1/reservations?"+query).is(400, "invalid_request")
		require.Len(t, a.at("errors"), 1, query)
		require.Equal(t, want, a.text("errors.0.pointer"), query)
	}
	a := w.get("acme:support", "/v1/reservations?x=1&y=2&page_size=a").is(400, "invalid_request")
	require.Len(t, a.at("errors"), 3)
	w.get("acme:support", "/v1/bindings?active=yes").is(400, "invalid_request")
	w.get("", "/livez?x=1").is(400, "invalid_request")
}

// Ids that cannot be one are answered like ids that nobody has.
func TestMalformedIDsAreUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	same := headersOf("X-Request-ID", "the-same")
	want := w.do(call{who: "acme:all", method: "GET", path: "/v1/servers/" + "srv_01900000000070008000000000000000", header: same}).is(404, "not_found")
	for _, id := range []string{
		"srv_1", "1", "res_01900000000070008000000000000000", "srv_0190000000007000800000000000000g", "SRV_01900000000070008000000000000000",
		"srv_01900000-0000-7000-8000-000000000000", "%00", "%FF", "srv_" + strings.Repeat("0", 3000), "..%2Fservers", "'%20OR%20''='",
	} {
		a := w.do(call{who: "acme:all", method: "GET", path: "/v1/servers/" + id, header: same}).is(404, "not_found")
		require.Equal(t, string(want.body), string(a.body), id)
	}
}
