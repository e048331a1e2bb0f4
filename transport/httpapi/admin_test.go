package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrganizations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.post("acme:platform", "/v1/organizations", `{"name":"New Host"}`).is(201, "")
	require.Equal(t, []string{"new-host", "900", "10", "false"}, []string{made.text("id"), made.text("hold_seconds"), made.text("hold_limit"), made.text("closing")})
	w.post("acme:platform", "/v1/organizations", `{"name":"New Host"}`).is(409, "organization_exists")
	w.post("acme:platform", "/v1/organizations", `{"name":"!!!"}`).is(400, "invalid_request")
	path := made.header.Get("Location")
	require.JSONEq(t, string(made.body), string(w.get("acme:platform", path).is(200, "").body))
	w.patch(path, `{"hold_seconds":600}`).is(428, "precondition_required")
	w.patch(path, `{"hold_seconds":600,"closing":true}`, "If-Match", made.header.Get("ETag")).is(200, "")
	stale := w.patch(path, `{"hold_seconds":700}`, "If-Match", made.header.Get("ETag")).is(412, "precondition_failed")
	require.Equal(t, w.get("acme:platform", path).header.Get("ETag"), stale.header.Get("ETag"))
	require.Equal(t, []string{"acme", "new-host", "rival"}, []string{
		w.get("acme:platform", "/v1/organizations").text("items.0.id"), w.get("acme:platform", "/v1/organizations").text("items.1.id"),
		w.get("acme:platform", "/v1/organizations").text("items.2.id"),
	})
	page := w.get("acme:platform", "/v1/organizations?page_size=2").text("next_page_token")
	require.Equal(t, "rival", w.get("acme:platform", "/v1/organizations?page_size=2&page_token="+page).text("items.0.id"))
	w.get("acme:platform", "/v1/organizations/UPPER").is(404, "not_found")
}

// A key is shown once, gives no more than its maker has, and ends when it is revoked.
func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.post("acme:admin", "/v1/keys", `{"name":"shop","scopes":["admin"],"expires_at":"2999-01-01T00:00:00Z"}`).is(201, "")
	require.True(t, strings.HasPrefix(made.text("key"), "alk_"))
	path := made.header.Get("Location")
	shown := w.get("acme:admin", path).is(200, "")
	require.Empty(t, shown.text("key"))
	require.Equal(t, "2999-01-01T00:00:00Z", shown.text("expires_at"))

	a := w.post("acme:admin", "/v1/keys", `{"name":"more","scopes":["admin","platform","orders"]}`).is(403, "scope_exceeded")
	require.Contains(t, a.text("detail"), "orders, platform")
	w.post("acme:admin", "/v1/keys", `{"name":"old","scopes":["admin"],"expires_at":"2001-01-01T00:00:00Z"}`).is(400, "invalid_request")
	w.post("acme:admin", "/v1/keys", `{"name":"none","scopes":[]}`).is(400, "invalid_request")

	bearer := headersOf("Authorization", "bearer "+made.text("key"))
	w.do(call{method: "GET", path: "/v1/keys", header: bearer}).is(200, "")
	revoked := w.do(call{who: "acme:admin", method: "DELETE", path: path}).is(200, "")
	require.NotEmpty(t, revoked.text("revoked_at"))
	w.do(call{method: "GET", path: "/v1/keys", header: bearer}).is(401, "unauthenticated")
	again := w.do(call{who: "acme:admin", method: "DELETE", path: path}).is(200, "")
	require.Equal(t, revoked.text("revoked_at"), again.text("revoked_at"))

	first := w.get("acme:admin", "/v1/keys?page_size=1").is(200, "")
	rest := w.get("acme:admin", "/v1/keys?page_token="+first.text("next_page_token")).is(200, "")
	require.NotEqual(t, first.text("items.0.id"), rest.text("items.0.id"))
}

// An admin turns its own organization, the platform everything.
//
// Requirements: R62, R63.
func TestFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const own, other = "/v1/flags/reservations/overrides/acme", "/v1/flags/reservations/overrides/rival"
	put := func(who, path, body string) *answer {
		return w.do(call{who: who, method: "PUT", path: path, body: body})
	}
	require.Equal(t, "false", put("acme:admin", own, `{"enabled":false}`).is(200, "").text("enabled"))
	require.Equal(t, "false", w.get("acme:admin", "/v1/flags/reservations").is(200, "").text("enabled"))
	w.addServer(1000)
	w.reserve("acme:checkout", "1").is(403, "feature_disabled")

	put("acme:platform", "/v1/flags/reservations", `{"percent":100}`).is(200, "")
	w.reserve("acme:checkout", "1").is(403, "feature_disabled")
	w.do(call{who: "acme:admin", method: "DELETE", path: own}).is(204, "")
	w.reserve("acme:checkout", "1").is(201, "")
	w.do(call{who: "acme:admin", method: "DELETE", path: own}).is(404, "not_found")

	for _, method := range []string{"GET", "PUT", "DELETE"} {
		body := ""
		if method == "PUT" {
			body = `{"enabled":true}`
		}
		w.do(call{who: "acme:admin", method: method, path: other, body: body}).is(404, "not_found")
	}
	require.Equal(t, "true", w.get("acme:platform", other).is(200, "").text("enabled"))
	require.Nil(t, w.get("acme:admin", "/v1/flags").at("items.0.overrides.0"), "an admin sees nobody else's override")
	require.Equal(t, "rival", w.get("acme:platform", "/v1/flags").text("items.0.overrides.0.organization_id"))

	put("acme:platform", "/v1/flags/reservations", `{"percent":101}`).is(400, "invalid_request")
	put("acme:platform", "/v1/flags/nonsense", `{"percent":1}`).is(404, "not_found")
	put("acme:platform", "/v1/flags/reservations/overrides/nobody", `{"enabled":true}`).is(404, "not_found")
}

// Acts and refused attempts are in the trail, each in that of its own organization.
//
// Requirements: R65. Cases: AU-05. Faults: F-A3.
func TestAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(call{who: "acme:checkout", method: "GET", path: "/v1/keys", header: headersOf("X-Request-ID", "the-attempt")}).is(403, "missing_scope")
	key := w.post("acme:all", "/v1/keys", `{"name":"k","scopes":["checkout"]}`).is(201, "")

	a := w.get("acme:admin", "/v1/audit?page_size=500").is(200, "")
	var refused, made map[string]any
	for _, row := range a.at("items").([]any) {
		entry := row.(map[string]any)
		require.Equal(t, "acme", entry["organization_id"])
		if entry["outcome"] == "refused" {
			refused = entry
		}
		if entry["action"] == "key.created" && entry["subject"] == key.text("id") {
			made = entry
		}
	}
	require.Equal(t, []any{"request", "GET /v1/keys", "the-attempt"}, []any{refused["action"], refused["subject"], refused["request_id"]})
	require.NotNil(t, made)
	require.NotContains(t, string(a.body), key.text("key")[40:], "no secret")

	next := w.get("acme:admin", "/v1/audit?after="+a.text("next_after")).is(200, "")
	require.NotEmpty(t, next.text("next_after"))
	w.get("acme:admin", "/v1/audit?after=nonsense").is(400, "invalid_request")
	require.NotContains(t, string(w.get("rival:admin", "/v1/audit").is(200, "").body), "acme")
	require.Contains(t, string(w.get("rival:platform", "/v1/audit?page_size=500").is(200, "").body), "acme")

	// A key that was not accepted: in its organization's trail if the secret was right, else in the platform's own.
	bearer := func(text string) call {
		return call{method: "GET", path: "/v1/keys", header: headersOf("Authorization", "Bearer "+text, "X-Request-ID", "stranger")}
	}
	w.do(call{who: "acme:admin", method: "DELETE", path: "/v1/keys/" + key.text("id")}).is(200, "")
	w.do(bearer(key.text("key"))).is(401, "unauthenticated")
	w.do(bearer("alk_nonsense")).is(401, "unauthenticated")
	reasons := map[any]any{}
	for _, row := range w.get("acme:platform", "/v1/audit?page_size=500").at("items").([]any) {
		entry := row.(map[string]any)
		if entry["request_id"] == "stranger" {
			reasons[entry["detail"].(map[string]any)["reason"]] = entry["organization_id"]
		}
	}
	require.Equal(t, map[any]any{"revoked": "acme", "malformed": nil}, reasons)
}
