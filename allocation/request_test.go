package allocation

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/inventory"
	"allocator/reservation"
)

// Two requests have one fingerprint exactly if they ask for the same: order line, customer and requirements. An empty
// list is no list. The key and the wish to wait are not part of what is asked.
//
// Requirements: R46
func TestFingerprintsAreEqualExactlyForTheSameRequest(t *testing.T) {
	t.Parallel()
	seen := map[bool]int{}
	rapid.Check(t, func(rt *rapid.T) {
		a := Request{Order: drawLine(rt), CustomerRef: pick(rt, "customer", "", "c-1"), Requirements: drawRequirements(rt)}
		b := changed(rt, a)
		same := cmp.Equal(asked(a), asked(b), cmpopts.EquateEmpty())
		require.Equal(rt, same, string(a.Fingerprint()) == string(b.Fingerprint()), cmp.Diff(a, b))
		seen[same]++
	})
	require.NotZero(t, seen[true], "no two requests were the same")
	require.NotZero(t, seen[false], "no two requests differed")
}

func drawLine(rt *rapid.T) reservation.OrderLine {
	// Texts that would run into each other if they were only put one behind the other.
	return reservation.OrderLine{
		OrderID: pick(rt, "order", "1", "11", `1","order_line":"1`), Line: pick(rt, "line", "1", "11"), Unit: pick[int64](rt, "unit", 1, 11),
	}
}

// changed draws up to two parts of a request anew, which may well come out as they were.
func changed(rt *rapid.T, r Request) Request {
	r.IdempotencyKey, r.Wait = pick(rt, "key", "", "k"), MaxWait
	parts := map[string]func(){
		"order":    func() { r.Order = drawLine(rt) },
		"customer": func() { r.CustomerRef = pick(rt, "customer", "", "c-1") },
	}
	for name, draw := range fields {
		parts[name] = func() { draw(rt, &r.Requirements) }
	}
	names := rapid.SampledFrom(slices.Sorted(maps.Keys(parts)))
	for _, name := range rapid.SliceOfN(names, 0, 2).Draw(rt, "changed") {
		parts[name]()
	}
	return r
}

// asked is what a request is about.
func asked(r Request) any { return []any{r.Order, r.CustomerRef, r.Requirements} }

// However a body is written, what counts is what it says.
//
// Requirements: R46. Faults: F-K3.
func TestFingerprintOfBodies(t *testing.T) {
	t.Parallel()
	const body = `{"sites":["FSN1","HEL1"],"cpu":{"cores_min":8,"vendors":["AMD"]},"memory":{"ecc":false},"attributes":{"a":"1","b":"ü"}}`
	tests := map[string]struct {
		body string
		same bool
	}{
		"the same text":                   {body, true},
		"other order of keys":             {`{"attributes":{"b":"ü","a":"1"},"memory":{"ecc":false},"cpu":{"vendors":["AMD"],"cores_min":8},"sites":["FSN1","HEL1"]}`, true},
		"spaces and escapes":              {"{ \"sites\" : [\"F\\u0053N1\",\"HEL1\"],\n\"cpu\":{\"cores_min\":8,\"vendors\":[\"AMD\"]},\"memory\":{\"ecc\":false},\"attributes\":{\"a\":\"1\",\"b\":\"\\u00fc\"}}", true},
		"empty lists, maps and null":      {`{"racks":[],"tags_all":null,"gpu":null,"sites":["FSN1","HEL1"],"cpu":{"cores_min":8,"vendors":["AMD"],"models":[]},"memory":{"ecc":false},"network":{},"attributes":{"a":"1","b":"ü"}}`, true},
		"other order within a list":       {`{"sites":["HEL1","FSN1"],"cpu":{"cores_min":8,"vendors":["AMD"]},"memory":{"ecc":false},"attributes":{"a":"1","b":"ü"}}`, false},
		"error correction left open":      {`{"sites":["FSN1","HEL1"],"cpu":{"cores_min":8,"vendors":["AMD"]},"attributes":{"a":"1","b":"ü"}}`, false},
		"another number":                  {`{"sites":["FSN1","HEL1"],"cpu":{"cores_min":9,"vendors":["AMD"]},"memory":{"ecc":false},"attributes":{"a":"1","b":"ü"}}`, false},
		"a letter in another composition": {`{"sites":["FSN1","HEL1"],"cpu":{"cores_min":8,"vendors":["AMD"]},"memory":{"ecc":false},"attributes":{"a":"1","b":"` + "u\u0308" + `"}}`, false},
	}
	first := ofBody(t, body)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.same, string(first) == string(ofBody(t, tt.body)))
		})
	}
}

func ofBody(t *testing.T, body string) []byte {
	t.Helper()
	r := Request{Order: reservation.OrderLine{OrderID: "A-1", Line: "1", Unit: 1}}
	require.NoError(t, json.Unmarshal([]byte(body), &r.Requirements))
	return r.Fingerprint()
}

// The arguments of the rules are those of what was asked, and travel as JSON without losing anything.
//
// Requirements: R32
func TestArguments(t *testing.T) {
	t.Parallel()
	require.Empty(t, (&Requirements{Sites: []string{}, Attributes: map[string]string{}}).Arguments())
	r := Requirements{
		Sites: []string{"FSN1"}, Memory: MemoryRequirements{ECC: new(false)},
		Price: &PriceLimit{Currency: "EUR", MonthlyMax: new(inventory.Amount(80_5000))},
	}
	text, err := json.Marshal(r.Arguments())
	require.NoError(t, err)
	require.JSONEq(t, `{"sites":["FSN1"],"memory_ecc":false,"price_currency":"EUR","price_max":805000}`, string(text))
}
