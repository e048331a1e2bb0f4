package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a body may not be, and where the answer says it is wrong.
//
// Cases: AP-01, AP-05, AU-05. Faults: F-A2, F-H2, F-H3, F-H4.
func TestBodiesAreReadStrictly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]struct{ body, pointer, code string }{
		"an organization in the body":     {`{"order_id":"a","order_line":"1","organization_id":"rival"}`, "/organization_id", "unknown_field"},
		"a state in the body":             {`{"order_id":"a","order_line":"1","state":"converted"}`, "/state", "unknown_field"},
		"a deadline in the body":          {`{"order_id":"a","order_line":"1","expires_at":"2999-01-01T00:00:00Z"}`, "/expires_at", "unknown_field"},
		"a repeated field":                {`{"order_id":"a","order_id":"b","order_line":"1"}`, "/order_id", "repeated_field"},
		"a repeated field deep inside":    {`{"order_id":"a","order_line":"1","requirements":{"cpu":{"cores_min":1,"cores_min":2}}}`, "/requirements/cpu/cores_min", "repeated_field"},
		"a field in capitals":             {`{"order_id":"a","order_line":"1","Unit":1}`, "/Unit", "unknown_field"},
		"a field that folds to another":   {`{"order_id":"a","order_line":"1","requirements":{"\u017fites":[]}}`, "/requirements/ſites", "unknown_field"},
		"a number as text":                {`{"order_id":"a","order_line":"1","unit":"5"}`, "/unit", "wrong_type"},
		"a number as text in the line":    {`{"order_id":"a","order_line":1}`, "/order_line", "wrong_type"},
		"an exponent":                     {`{"order_id":"a","order_line":"1","unit":1e3}`, "/unit", "wrong_type"},
		"a point":                         {`{"order_id":"a","order_line":"1","unit":1.0}`, "/unit", "wrong_type"},
		"two to the power of 63":          {`{"order_id":"a","order_line":"1","unit":9223372036854775808}`, "/unit", "out_of_range"},
		"a number below zero":             {`{"order_id":"a","order_line":"1","requirements":{"cpu":{"cores_min":-1}}}`, "/requirements/cpu/cores_min", "out_of_range"},
		"NUL":                             {`{"order_id":"a\u0000","order_line":"1"}`, "/order_id", "control_character"},
		"a line break":                    {`{"order_id":"a\n{\"level\":\"ERROR\"}","order_line":"1"}`, "/order_id", "control_character"},
		"NUL in the name of an attribute": {`{"order_id":"a","order_line":"1","requirements":{"attributes":{"a\u0000":"b"}}}`, "/requirements/attributes/a\x00", "control_character"},
		"a byte that is no UTF-8":         {"{\"order_id\":\"\xff\",\"order_line\":\"1\"}", "", "invalid_utf8"},
		"half of a surrogate pair":        {`{"order_id":"\ud800","order_line":"1"}`, "", "malformed_json"},
		"something behind":                {`{"order_id":"a","order_line":"1"}{}`, "", "trailing_data"},
		"an empty order":                  {`{"order_id":"","order_line":"1"}`, "/order_id", "required"},
		"201 characters":                  {`{"order_id":"` + strings.Repeat("ü", 201) + `","order_line":"1"}`, "/order_id", "too_long"},
		"a server id of another form":     {`{"order_id":"a","order_line":"1","requirements":{"servers":["srv_1"]}}`, "/requirements/servers/0", "malformed"},
		"an amount with a comma":          {`{"order_id":"a","order_line":"1","requirements":{"price":{"currency":"EUR","monthly_max":"80,00"}}}`, "/requirements/price/monthly_max", "malformed"},
		"an amount as number":             {`{"order_id":"a","order_line":"1","requirements":{"price":{"currency":"EUR","monthly_max":80}}}`, "/requirements/price/monthly_max", "wrong_type"},
		"a currency in small letters":     {`{"order_id":"a","order_line":"1","requirements":{"price":{"currency":"eur"}}}`, "/requirements/price/currency", "malformed"},
		"nine groups of drives":           {`{"order_id":"a","order_line":"1","requirements":{"drives":[{},{},{},{},{},{},{},{},{}]}}`, "/requirements/drives", "too_many"},
		"nesting without an end":          {strings.Repeat("[", 20000), "", "too_deep"},
		"a list":                          {`[]`, "", "wrong_type"},
		"null":                            {`null`, "", "wrong_type"},
		"a text":                          {`"order"`, "", "wrong_type"},
	} {
		a := w.post("acme:checkout", "/v1/reservations", test.body, "Idempotency-Key", "k").is(400, "invalid_request")
		require.Len(t, a.at("errors"), 1, "%s: %s", name, a.body)
		require.Equal(t, []string{test.pointer, test.code}, []string{a.text("errors.0.pointer"), a.text("errors.0.code")}, name)
	}
	require.Zero(t, w.written()["decisions"], "malformed requests leave no decision")
}

func TestAllFaultsComeAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.post("acme:checkout", "/v1/reservations", `{"order_id":"","unit":"1","x":1,"requirements":{"raid":"zfs","sites":"FSN1","memory":{"ecc":"yes"}}}`, "Idempotency-Key", "k")
	a.is(400, "invalid_request")
	var pointers []any
	for _, fault := range a.at("errors").([]any) {
		pointers = append(pointers, fault.(map[string]any)["pointer"])
	}
	require.Equal(t, []any{"/order_id", "/order_line", "/requirements/memory/ecc", "/requirements/raid", "/requirements/sites", "/unit", "/x"}, pointers)
	for _, inner := range []string{"openapi", "schema", "wire.", "json:", "Go ", "allocator/"} {
		require.NotContains(t, string(a.body), inner)
	}
}

// Nulls, empty lists, other orders of fields and other spellings of the same value mean the same request.
// Cases: ID-08. Faults: F-K3.
func TestWhatMeansTheSameIsTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(4096)
	first := w.post("acme:checkout", "/v1/reservations", `{"order_id":"a","order_line":"1","requirements":{"memory":{"mib_min":1000},"price":{"currency":"EUR","monthly_max":"80"}}}`, "Idempotency-Key", "k").is(201, "")
	for _, same := range []string{
		`{"requirements":{"price":{"monthly_max":"80.00","currency":"EUR"},"memory":{"mib_min":1000,"ecc":null,"types":[]}},"order_line":"1","order_id":"a"}`,
		`{"order_id":"\u0061","order_line":"1","unit":1,"customer_ref":"","requirements":{"sites":[],"racks":null,"cpu":{"cores_min":0,"vendors":[],"benchmark_min":null},"gpu":null,"network":{},"attributes":{},"raid":null,"memory":{"mib_min":1000},"price":{"currency":"EUR","monthly_max":"80.0000"}}}`,
	} {
		require.Equal(t, first.text("id"), w.post("acme:checkout", "/v1/reservations", same, "Idempotency-Key", "k").is(200, "").text("id"))
	}
	w.post("acme:checkout", "/v1/reservations", `{"order_id":"a","order_line":"1","requirements":{"memory":{"mib_min":1000,"ecc":false},"price":{"currency":"EUR","monthly_max":"80"}}}`, "Idempotency-Key", "k").is(422, "idempotency_mismatch")
}

// Exactly one key of 1 to 255 visible characters.
//
// Cases: AP-01. Faults: F-K8.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(1000)
	for name, headers := range map[string][]string{
		"none":            {},
		"an empty one":    {"Idempotency-Key", ""},
		"256 characters":  {"Idempotency-Key", strings.Repeat("k", 256)},
		"a blank inside":  {"Idempotency-Key", "a b"},
		"a tab inside":    {"Idempotency-Key", "a\tb"},
		"an umlaut":       {"Idempotency-Key", "ü"},
		"two of them":     {"Idempotency-Key", "a", "Idempotency-Key", "b"},
		"two of the same": {"Idempotency-Key", "a", "Idempotency-Key", "a"},
	} {
		a := w.post("acme:checkout", "/v1/reservations", order("1"), headers...)
		require.Equal(t, "idempotency_key_invalid", a.text("code"), name)
		require.Equal(t, 400, a.status, name)
	}
	w.post("acme:checkout", "/v1/reservations", order("1"), "Idempotency-Key", strings.Repeat("k", 255)).is(201, "")
	w.turn("rival", true)
	w.post("rival:checkout", "/v1/reservations", order("1"), "Idempotency-Key", strings.Repeat("k", 255)).is(409, "no_capacity")
}
