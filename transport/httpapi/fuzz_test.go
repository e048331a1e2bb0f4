package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReservationBody sends any bytes at all to the route that is open to shops: bad input never gives a 5xx,
// from this code, the generated code or the database, and every answer is as the contract says.
//
// Faults: F-H2, F-H3, F-H4.
func FuzzReservationBody(f *testing.F) {
	w := newWorld(f)
	w.addServer(4096)
	key := w.key("acme:checkout")
	for _, seed := range []string{
		`{"order_id":"a","order_line":"1"}`,
		`{"order_id":"\ud83d\ude00\u202e","order_line":"\uffff","unit":1000000,"customer_ref":"x"}`,
		`{"order_id":"a","order_line":"1","requirements":{"attributes":{"\u0000":"x"},"drives":[{"count_min":1000}]}}`,
		`{"order_id":"b","order_line":"1","requirements":{"cpu":{"benchmark_min":{"name":"x","score":1000000000000}},"memory":{"mib_min":1000000000000},"gpu":{}}}`,
		`{"order_id":"c","order_line":"1","requirements":{"price":{"currency":"EUR","monthly_max":"999999999999.9999"},"tags_all":["'; DROP TABLE servers; --"]}}`,
		`[1,2,3]`, "\xff", `{"order_id":1e999}`,
	} {
		f.Add([]byte(seed), "fuzz-key")
	}
	f.Fuzz(func(t *testing.T, body []byte, idempotency string) {
		header := headersOf("Authorization", "Bearer "+key, "Content-Type", "application/json")
		if visible(idempotency) {
			header.Set("Idempotency-Key", idempotency)
		}
		one := &world{t: t, server: w.server, spec: w.spec}
		a := one.do(call{method: "POST", path: "/v1/reservations", body: string(body), header: header})
		require.Less(t, a.status, 500, "%q: %s", body, a.body)
	})
}

// visible tells what Go's own client would not refuse to send.
func visible(text string) bool {
	for _, r := range text {
		if r < 0x21 || r > 0x7e {
			return false
		}
	}
	return text != ""
}
