package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func (w *world) act(who, id, act, body string, headers ...string) *answer {
	w.t.Helper()
	return w.post(who, "/v1/reservations/"+id+"/"+act, body, headers...)
}

// lapse lets the deadline of a reservation pass.
func (w *world) lapse(id string) {
	w.t.Helper()
	w.exec(`UPDATE reservations SET expires_at = clock_timestamp() - interval '1 second' WHERE 'res_' || replace(id::text, '-', '') = $1`, id)
}

// Who may renew and cancel, and what each state answers.
//
// Requirements: R53, R61. Faults: F-R8.
func TestRenewAndCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.held()
	id, token := r.text("id"), r.text("hold_token")

	// A checkout needs the token, and the right one.
	w.act("acme:checkout", id, "renew", "").is(403, "not_holder")
	w.act("acme:checkout", id, "renew", "", "Hold-Token", token+"x").is(403, "not_holder")
	w.act("acme:orders", id, "renew", "", "Hold-Token", "hold_test_AAAA").is(403, "not_holder")
	w.act("acme:checkout", id, "renew", "", "Hold-Token", token, "Hold-Token", token).is(400, "invalid_request")

	// A renewal moves the deadline and the tag.
	a := w.act("acme:checkout", id, "renew", "", "Hold-Token", token).is(200, "")
	require.Equal(t, `"2-held"`, a.header.Get("ETag"))
	require.Greater(t, a.text("expires_at"), r.text("expires_at"))
	require.Nil(t, a.at("hold_token"))
	w.act("acme:orders", id, "renew", "").is(200, "")

	// A renewal that would move nothing.
	w.exec(`UPDATE reservations SET max_expires_at = expires_at WHERE 'res_' || replace(id::text, '-', '') = $1`, id)
	w.act("acme:orders", id, "renew", "").is(409, "renewal_limit")

	// Staff say why they cancel, a checkout need not.
	a = w.act("acme:support", id, "cancel", "").is(400, "invalid_request")
	require.Equal(t, []string{"/reason_code", "/text"}, []string{a.text("errors.0.pointer"), a.text("errors.1.pointer")})
	w.act("acme:checkout", id, "cancel", "").is(403, "not_holder")
	a = w.act("acme:checkout", id, "cancel", "", "Hold-Token", token).is(200, "")
	require.Equal(t, []string{"cancelled", "key", "other"}, []string{a.text("state"), a.text("ended_by.kind"), a.text("end_reason")})

	// After the cancellation.
	w.act("acme:support", id, "cancel", `{"reason_code":"fraud","text":"stolen card"}`).is(200, "")
	w.act("acme:orders", id, "renew", "").is(409, "reservation_cancelled")
	w.act("acme:orders", id, "convert", `{"service_id":"s"}`).is(409, "reservation_cancelled")
	w.act("acme:support", id, "take-over", `{"reason":"r"}`).is(409, "reservation_cancelled")
	require.Equal(t, "cancelled", w.get("acme:checkout", "/v1/reservations/"+id).is(200, "").text("state"))

	// After the deadline.
	dead := w.held().text("id")
	w.lapse(dead)
	require.Equal(t, "expired", w.get("acme:checkout", "/v1/reservations/"+dead).is(200, "").text("state"))
	w.act("acme:orders", dead, "renew", "").is(409, "reservation_expired")
	w.act("acme:orders", dead, "convert", `{"service_id":"s"}`).is(409, "reservation_expired")
	require.Equal(t, "expired", w.act("acme:orders", dead, "cancel", "").is(200, "").text("state"))
}

// Converting, converting again, and what stands in its way.
//
// Requirements: R47, R53.
func TestConvert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.held().text("id")
	w.act("acme:checkout", id, "convert", `{"service_id":"vps-1"}`).is(403, "missing_scope")
	first := w.act("acme:orders", id, "convert", `{"service_id":"vps-1"}`).is(201, "")
	require.Equal(t, w.get("acme:support", "/v1/reservations/"+id).text("fence"), first.text("fence"))
	require.Equal(t, "/v1/bindings/"+first.text("id"), first.header.Get("Location"))
	again := w.act("acme:orders", id, "convert", `{"service_id":"vps-1"}`).is(200, "")
	require.JSONEq(t, string(first.body), string(again.body))

	other := w.act("acme:orders", id, "convert", `{"service_id":"vps-2"}`).is(409, "already_converted")
	require.Equal(t, []string{first.text("id"), "vps-1"}, []string{other.text("binding_id"), other.text("service_id")})
	w.act("acme:orders", id, "cancel", "").is(409, "already_converted")
	w.act("acme:orders", id, "renew", "").is(409, "already_converted")

	second := w.held().text("id")
	w.act("acme:orders", second, "convert", `{"service_id":"vps-1"}`).is(409, "service_already_bound")
}

// Faults: F-R9.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.held()
	a := w.act("acme:support", r.text("id"), "take-over", `{"reason":"the customer called"}`).is(200, "")
	require.NotEqual(t, r.text("hold_token"), a.text("hold_token"))
	require.NotEqual(t, r.text("fence"), a.text("fence"))
	require.Equal(t, "true", a.text("taken_over"))
	w.act("acme:checkout", r.text("id"), "renew", "", "Hold-Token", r.text("hold_token")).is(403, "not_holder")
	w.act("acme:checkout", r.text("id"), "renew", "", "Hold-Token", a.text("hold_token")).is(200, "")

	replay := w.reserve("acme:checkout", r.text("order_id")[len("A-"):]).is(200, "")
	require.Contains(t, string(replay.body), `"hold_token":null`)
	require.Equal(t, "true", replay.text("taken_over"))
}

func TestBindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.addServer(1024)
	direct := `{"server_id":"` + server + `","service_id":"old-1","since":"2024-01-01T00:00:00Z","reason":"sold before"}`
	made := w.post("acme:operator", "/v1/bindings", direct).is(201, "")
	w.get("acme:operator", made.header.Get("Location")).is(200, "")
	w.post("acme:operator", "/v1/bindings", direct).is(409, "server_in_use")
	require.Equal(t, "all_sold", w.reserve("acme:checkout", "1").is(409, "no_capacity").text("cause"))

	list := w.get("acme:orders", "/v1/bindings?active=true&service_id=old-1&service_id=old-2").is(200, "")
	require.Equal(t, made.text("id"), list.text("items.0.id"))
	require.Nil(t, w.get("acme:orders", "/v1/bindings?active=false").at("items.0"))

	ended := w.post("acme:orders", "/v1/bindings/"+made.text("id")+"/end", `{"reason":"terminated","delivery_failed":true}`).is(200, "")
	require.Equal(t, []string{"false", "terminated", "true"}, []string{ended.text("active"), ended.text("end_reason"), ended.text("delivery_failed")})
	again := w.post("acme:orders", "/v1/bindings/"+made.text("id")+"/end", `{"reason":"again"}`).is(200, "")
	require.Equal(t, "terminated", again.text("end_reason"))
	require.Equal(t, "failed", w.get("acme:operator", "/v1/servers/"+server).text("state"))
}
