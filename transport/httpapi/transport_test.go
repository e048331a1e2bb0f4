package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every error is problem+json: the router's own, and those of methods and bodies.
func TestErrorsOfTheRouterAreProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/nothing", "/v1/servers/", "/v1/reservations/x/y/z", "/V1/servers", "//v1/servers"} {
		a := w.raw(call{who: "acme:all", method: "GET", path: path}).is(404, "not_found")
		require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), path)
		require.NotEmpty(t, a.text("request_id"))
	}
	a := w.raw(call{who: "acme:all", method: "DELETE", path: "/v1/servers"}).is(405, "method_not_allowed")
	for _, method := range []string{"GET", "POST", "HEAD"} {
		require.Contains(t, a.header.Get("Allow"), method)
	}
	w.raw(call{method: "TRACE", path: "/v1/servers"}).is(405, "method_not_allowed")
	w.raw(call{method: "BREW", path: "/v1/servers"}).is(405, "method_not_allowed")
}

func TestHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string]int{
		"/livez": 200, "/v1/servers": 200, "/v1/servers/" + w.addServer(1): 200, "/v1/servers/srv_0": 404, "/v1/nothing": 404, "/v1/evaluations": 405,
	} {
		a := w.raw(call{who: "acme:all", method: "HEAD", path: path})
		require.Equal(t, want, a.status, path)
		require.Empty(t, a.body)
	}
	require.NotEmpty(t, w.raw(call{method: "HEAD", path: "/v1/servers"}).header.Get("WWW-Authenticate"))
}

func TestProblemPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page := w.get("", "/problems/no_capacity").is(200, "")
	require.Contains(t, page.header.Get("Content-Type"), "text/html")
	require.Contains(t, string(page.body), "no_capacity")
	require.Contains(t, page.header.Get("Content-Security-Policy"), "default-src 'none'")
	for accept, kind := range map[string]string{
		"application/json": "application/json", "text/html,application/xhtml+xml,*/*;q=0.8": "text/html", "*/*": "text/html", "application/json;q=0.5,text/html;q=0.4": "application/json",
		"application/*;q=1,text/*;q=0.1": "application/json", "application/json;q=nonsense": "text/html",
	} {
		a := w.do(call{method: "GET", path: "/problems/no_capacity", header: headersOf("Accept", accept)}).is(200, "")
		require.Contains(t, a.header.Get("Content-Type"), kind, accept)
	}
	w.get("", "/problems/nonsense").is(404, "not_found")
	w.get("", "/problems/..%2f..%2fetc").is(404, "not_found")
	refused := w.get("", "/v1/servers").is(401, "unauthenticated")
	w.get("", refused.text("type")).is(200, "")
	require.Equal(t, "1.2.3-test", w.get("", "/version").is(200, "").text("version"))
}
