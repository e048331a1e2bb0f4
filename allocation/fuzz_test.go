package allocation

import (
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"allocator/reservation"
)

// FuzzFingerprint takes two requests apart from texts: they have one fingerprint exactly if they ask for the same.
//
// Requirements: R46. Faults: F-K3.
func FuzzFingerprint(f *testing.F) {
	f.Add("a", "1", int64(1), "", `{"sites":["FSN1"]}`, "a", "1", int64(1), "", `{"sites":["FSN1"],"racks":[]}`)
	f.Add("a", "11", int64(1), "", `{}`, "a1", "1", int64(1), "", `{}`)
	f.Add("a", "1", int64(1), "c", `{"memory":{"mib_min":1024}}`, "a", "1", int64(1), "c", `{"memory":{"mib_min":1025}}`)
	f.Add(`a","order_line":"1`, "", int64(1), "", `{"tags_all":["a","b"]}`, "a", "1", int64(1), "", `{"tags_all":["b","a"]}`)
	f.Add("\u2028", "<", int64(-1), "é", `{"price":{"currency":"EUR","monthly_max":"80.0"}}`, "\u2028", "<", int64(-1), "é", `{"price":{"currency":"EUR","monthly_max":"80.00"}}`)
	f.Add("a", "1", int64(1), "c-1", `{}`, "a", "1", int64(1), "c-2", `{}`) // and one part at a time
	f.Add("a", "1", int64(1), "c", `{}`, "a", "1", int64(2), "c", `{}`)
	f.Add("a", "1", int64(1), "c", `{}`, "a", "2", int64(1), "c", `{}`)
	f.Add("a", "1", int64(1), "c", `{}`, "b", "1", int64(1), "c", `{}`)
	f.Fuzz(func(t *testing.T, order, line string, unit int64, customer, wanted, order2, line2 string, unit2 int64, customer2, wanted2 string) {
		a, ok := fuzzedRequest(order, line, unit, customer, wanted)
		b, okToo := fuzzedRequest(order2, line2, unit2, customer2, wanted2)
		if !ok || !okToo {
			return // the door lets no such request through
		}
		require.Equal(t, cmp.Equal(asked(a), asked(b), cmpopts.EquateEmpty()), string(a.Fingerprint()) == string(b.Fingerprint()), cmp.Diff(a, b))
		again := a
		again.IdempotencyKey, again.Wait = customer2, MaxWait
		require.Equal(t, a.Fingerprint(), again.Fingerprint(), "key and wait are not asked for")
	})
}

func fuzzedRequest(order, line string, unit int64, customer, wanted string) (r Request, ok bool) {
	r = Request{Order: reservation.OrderLine{OrderID: order, Line: line, Unit: unit}, CustomerRef: customer}
	return r, valid(order, line, customer, wanted) && json.Unmarshal([]byte(wanted), &r.Requirements) == nil
}

// valid tells whether all are UTF-8, as the door demands.
func valid(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool { return !utf8.ValidString(s) })
}
