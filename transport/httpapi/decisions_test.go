package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Support reads what was seen and why, in the order in which it happened.
//
// Requirements: R33, R38.
func TestDecisionsAndOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	small, big := w.addServer(1000), w.addServer(4000)
	a := w.reserve("acme:checkout", "1", `"requirements":{"memory":{"mib_min":2000},"sites":["FSN1"]}`).is(201, "")
	require.Equal(t, big, a.text("server.id"))

	d := w.get("acme:support", "/v1/decisions/"+a.text("decision_id")).is(200, "")
	require.Equal(t, []string{"reserved", "2", "1", "A-1", "2000", a.text("id"), "chosen"}, []string{
		d.text("outcome"), d.text("servers"), d.text("eligible"), d.text("order_id"), d.text("requirements.memory.mib_min"), d.text("reservation_id"), d.text("choice.code"),
	})
	rows := w.get("acme:support", "/v1/decisions/"+a.text("decision_id")+"/candidates").is(200, "")
	byID := map[string]map[string]any{}
	for _, row := range rows.at("items").([]any) {
		byID[row.(map[string]any)["server_id"].(string)] = row.(map[string]any)
	}
	require.Equal(t, "memory_size", reasonOf(byID[small]))
	require.Equal(t, "chosen", reasonOf(byID[big]))
	only := w.get("acme:support", "/v1/decisions/"+a.text("decision_id")+"/candidates?reason=memory_size&reason=rack").is(200, "")
	require.Len(t, only.at("items"), 1)
	require.Equal(t, small, only.text("items.0.server_id"))

	w.reserve("acme:checkout", "2", `"requirements":{"sites":["HEL1"]}`).is(409, "no_capacity")
	w.act("acme:orders", a.text("id"), "convert", `{"service_id":"vps-1"}`).is(201, "")
	require.Len(t, w.get("acme:support", "/v1/decisions?outcome=no_capacity").at("items"), 1)
	require.Len(t, w.get("acme:support", "/v1/decisions?order_id=A-1&order_id=A-2").at("items"), 2)

	o := w.get("acme:support", "/v1/orders/A-1").is(200, "")
	require.Equal(t, []string{"converted", "reserved", "vps-1", "reservation.held", "reservation.converted", "false"}, []string{
		o.text("reservations.0.state"), o.text("decisions.0.outcome"), o.text("bindings.0.service_id"), o.text("events.0.type"), o.text("events.1.type"), o.text("truncated"),
	})
	require.Equal(t, "key-1", o.text("reservations.0.idempotency_key"))
	w.get("acme:support", "/v1/orders/nobody").is(404, "not_found")
	w.get("acme:support", "/v1/decisions/dec_018bcfe568007000800000000000000f").is(410, "decision_gone") // of November 2023
	w.get("acme:support", "/v1/decisions/dec_018bcfe568007000800000000000000f/candidates").is(410, "decision_gone")
}

func reasonOf(candidate map[string]any) string {
	return candidate["reasons"].([]any)[0].(map[string]any)["code"].(string)
}

// Cases: AP-03.
func TestOrderIDsWithSlashesAndSpaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(1000)
	w.post("acme:checkout", "/v1/reservations", `{"order_id":"a/b ü%","order_line":"1"}`, "Idempotency-Key", "k").is(201, "")
	require.Equal(t, "a/b ü%", w.get("acme:support", "/v1/orders/a%2Fb%20%C3%BC%25").is(200, "").text("order_id"))
	w.get("acme:support", "/v1/orders/a/b").is(404, "not_found")
	w.get("acme:support", "/v1/orders/%00").is(404, "not_found")
	w.get("acme:support", "/v1/orders/%FF").is(404, "not_found")
}

// A checkout sees counts alone; the sentence that names a server is for support.
//
// Cases: XP-06.
func TestEvaluation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 {
		w.addServer(1000 * (i + 1))
	}
	wish := `{"key":"k","requirements":{"memory":{"mib_min":1500}}}`
	counts := w.post("acme:checkout", "/v1/evaluations", wish).is(200, "")
	require.Equal(t, []string{"3", "2", "memory_size", "1"}, []string{
		counts.text("servers"), counts.text("eligible"), counts.text("counts.0.code"), counts.text("counts.0.servers"),
	})
	require.NotContains(t, string(counts.body), "srv_")
	require.Equal(t, "Fitting and free at this instant: 2 of 3.", counts.text("text"))

	all := w.post("acme:support", "/v1/evaluations", wish).is(200, "")
	require.Len(t, all.at("ranked"), 2)
	require.Len(t, all.at("rejected"), 1)
	require.Equal(t, "memory_size", all.text("rejected.0.reasons.0.code"))
	chosen := w.post("acme:checkout", "/v1/reservations", order("1", `"requirements":{"memory":{"mib_min":1500}}`), "Idempotency-Key", "k").is(201, "")
	require.Equal(t, all.text("ranked.0.server.id"), chosen.text("server.id"), "what an evaluation with the key says is what happens")

	none := w.post("acme:checkout", "/v1/evaluations", `{"requirements":{"sites":["HEL1"]}}`).is(200, "")
	require.Equal(t, []string{"nothing_matches", "sites"}, []string{none.text("cause"), none.text("nearest.requirement")})
}

func TestReservationList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids []string
	for i := range 5 {
		w.addServer(1000)
		ids = append([]string{w.reserve("acme:checkout", fmt.Sprint("l", i)).is(201, "").text("id")}, ids...)
	}
	w.lapse(ids[0])
	var seen []string
	for token := ""; ; {
		a := w.get("acme:support", "/v1/reservations?page_size=2"+token).is(200, "")
		for _, row := range a.at("items").([]any) {
			seen = append(seen, row.(map[string]any)["id"].(string))
		}
		if token = a.text("next_page_token"); token == "" {
			break
		}
		token = "&page_token=" + token
	}
	require.Equal(t, ids, seen, "newest first")
	for query, want := range map[string]int{
		"state=expired": 1, "state=held": 4, "state=held&state=expired": 5, "order_id=A-l1&order_id=A-l2": 2, "order_id=A-l1&state=expired": 0,
		"expires_before=2000-01-01T00:00:00Z": 0, "expires_before=2999-01-01T00:00:00%2B02:00": 5,
	} {
		a := w.get("acme:checkout", "/v1/reservations?"+query).is(200, "")
		require.Len(t, a.at("items"), want, query)
		require.NotContains(t, string(a.body), "hold_test_", "no list shows a token")
	}
}
