package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// addServer adds a ready server with that much memory and returns its id; less memory ranks first.
func (w *world) addServer(mib int) string {
	w.t.Helper()
	n := w.next()
	return w.post("acme:all", "/v1/servers", fmt.Sprintf(
		`{"name":"s%d","site":"FSN1","rack":"A%d","memory":{"mib":%d},"price":{"amount":"38","currency":"EUR"},"state":"ready"}`, n, n%3, mib,
	)).is(201, "").text("id")
}

// order is the body of a reservation for an order of its own.
func order(name string, more ...string) string {
	return fmt.Sprintf(`{"order_id":"A-%s","order_line":"1"%s}`, name, strings.Join(append([]string{""}, more...), ","))
}

// reserve asks under a key of its own.
func (w *world) reserve(who, name string, more ...string) *answer {
	w.t.Helper()
	return w.post(who, "/v1/reservations", order(name, more...), "Idempotency-Key", "key-"+name)
}

// Requirements: R25, R32, R37, R43, R46.
func TestReserve(t *testing.T) {
	t.Parallel()

	t.Run("a free server is reserved, with everything that the caller needs", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		server := w.addServer(65536)
		a := w.reserve("acme:checkout", "1", `"customer_ref":"c-77"`, `"requirements":{"sites":["FSN1"],"price":{"currency":"EUR","monthly_max":"80.00"}}`).is(201, "")
		require.Equal(t, "/v1/reservations/"+a.text("id"), a.header.Get("Location"))
		require.Equal(t, `"1-held"`, a.header.Get("ETag"))
		require.Equal(t, "no-store", a.header.Get("Cache-Control"))
		require.Equal(t, server, a.text("server.id"))
		require.Equal(t, "38.00", a.text("server.price.amount"))
		require.True(t, strings.HasPrefix(a.text("hold_token"), "hold_test_"))
		require.Equal(t, []string{"held", "A-1", "1", "1", "c-77", "chosen", "1", "0", "0", "0"}, []string{
			a.text("state"), a.text("order_id"), a.text("order_line"), a.text("unit"), a.text("customer_ref"),
			a.text("reason.code"), a.text("reason.rank"), a.text("skipped"), a.text("stale"), a.text("attempts"),
		})
		require.Empty(t, a.text("idempotency_key"), "that is for support")
	})

	t.Run("the same key and body again is the same reservation, token included", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.addServer(65536)
		first := w.reserve("acme:checkout", "1").is(201, "")
		again := w.post("acme:checkout", "/v1/reservations", `{"requirements":{"memory":{"types":[]},"cpu":null},"unit":1,"order_line":"\u0031","order_id":"A-1"}`, "Idempotency-Key", "key-1").is(200, "")
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		require.JSONEq(t, string(first.body), string(again.body))
	})

	t.Run("the same order line under another key is the same reservation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.addServer(65536)
		first := w.reserve("acme:checkout", "1").is(201, "")
		again := w.post("acme:checkout", "/v1/reservations", order("1"), "Idempotency-Key", "another").is(200, "")
		require.JSONEq(t, string(first.body), string(again.body))
	})

	t.Run("the same key with another body is a mismatch", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.addServer(65536)
		w.reserve("acme:checkout", "1").is(201, "")
		w.post("acme:checkout", "/v1/reservations", order("2"), "Idempotency-Key", "key-1").is(422, "idempotency_mismatch")
	})

	t.Run("an order line that is held with other requirements names the reservation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.addServer(65536)
		first := w.reserve("acme:checkout", "1").is(201, "")
		a := w.post("acme:checkout", "/v1/reservations", order("1", `"requirements":{"sites":["HEL1"]}`), "Idempotency-Key", "k2").is(409, "order_line_held")
		require.Equal(t, "</v1/reservations/"+first.text("id")+`>; rel="related"`, a.header.Get("Link"))
		require.Equal(t, first.text("id"), a.text("reservation_id"))
	})

	t.Run("a customer with too many open holds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.exec(`UPDATE organizations SET hold_limit = 1 WHERE id = 'acme'`)
		w.addServer(65536)
		w.addServer(65536)
		w.reserve("acme:checkout", "1", `"customer_ref":"c"`).is(201, "")
		w.reserve("acme:checkout", "2", `"customer_ref":"c"`).is(409, "hold_limit")
		w.reserve("acme:checkout", "3").is(201, "")
	})

	t.Run("while the switch is off there is no new reservation, and an old key is still answered", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.addServer(65536)
		w.addServer(65536)
		first := w.reserve("acme:checkout", "1").is(201, "")
		w.turn("acme", false)
		w.reserve("acme:checkout", "2").is(403, "feature_disabled")
		require.Equal(t, first.text("id"), w.reserve("acme:checkout", "1").is(200, "").text("id"))
	})
}

// Each cause of no_capacity says what would help, in counts alone.
//
// Requirements: R32, R36, R37. Cases: XP-01, XP-06.
func TestNothingToSell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none := func(cause, action string) *answer {
		t.Helper()
		a := w.reserve("acme:checkout", fmt.Sprint("n", w.next()), `"requirements":{"memory":{"mib_min":1000}}`).is(409, "no_capacity")
		require.Equal(t, cause, a.text("cause"))
		require.Equal(t, action, a.text("action"))
		require.Equal(t, "false", a.text("retryable"))
		require.Empty(t, a.header.Get("Retry-After"))
		require.NotContains(t, string(a.body), "srv_", "no identity of a server")
		require.NotContains(t, string(a.body), "res_", "no identity of a reservation")
		require.NotEmpty(t, a.text("decision_id"))
		return a
	}
	none("inventory_empty", "contact_support")

	w.addServer(500)
	a := none("nothing_matches", "choose_other")
	require.Equal(t, "memory_size", a.text("counts.0.code"))
	require.Equal(t, "memory.mib_min", a.text("nearest.requirement"))
	require.Equal(t, "1", a.text("nearest.servers"))

	w.addServer(2000)
	held := w.reserve("acme:orders", "1", `"requirements":{"memory":{"mib_min":1000}}`).is(201, "")
	a = none("all_held", "wait_until")
	require.Equal(t, held.text("expires_at"), a.text("next_expiry_at"))

	w.post("acme:orders", "/v1/reservations/"+held.text("id")+"/convert", `{"service_id":"vps-1"}`).is(201, "")
	none("all_sold", "choose_other")
}
