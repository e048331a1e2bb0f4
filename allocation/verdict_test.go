package allocation

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/inventory"
)

// Every reason is given, not only the first; what is unknown has the reason unknown_attribute with the requirement's
// name, and what nobody asked for is no reason.
//
// Requirements: R32, R33
func TestJudgeGivesEveryReason(t *testing.T) {
	t.Parallel()
	ready := inventory.Server{ID: "srv_1", Site: "FSN1", State: inventory.StateReady}
	known := ready
	known.Manufacturer, known.CPU.Cores, known.Price = "Dell", 8, &inventory.Price{Amount: 50_0000, Currency: "EUR"}
	known.Attributes = map[string]string{"tier": "gold"}
	failed := known
	failed.State = inventory.StateFailed
	wanted := Requirements{
		Sites: []string{"HEL1"}, Manufacturers: []string{"HPE"}, CPU: CPURequirements{CoresMin: 16},
		Price: &PriceLimit{Currency: "EUR", MonthlyMax: new(inventory.Amount(40_0000))},
	}
	tests := map[string]struct {
		facts  Facts
		wanted Requirements
		want   []Reason
	}{
		"nothing asked of a free server":       {Facts{Server: ready}, Requirements{}, []Reason{}},
		"an empty list asks for nothing":       {Facts{Server: ready}, Requirements{Sites: []string{}, TagsAll: []string{}, Attributes: map[string]string{}}, []Reason{}},
		"held":                                 {Facts{Server: ready, Held: true}, Requirements{}, []Reason{{Code: CodeHeld}}},
		"sold":                                 {Facts{Server: ready, Bound: true}, Requirements{}, []Reason{{Code: CodeBound}}},
		"everything known and everything else": {Facts{Server: known}, wanted, []Reason{{CodeSite, "sites"}, {CodeManufacturer, "manufacturers"}, {CodeCores, "cpu.cores_min"}, {CodePrice, "price"}}},
		"everything unknown": {Facts{Server: ready}, wanted, []Reason{
			{CodeSite, "sites"}, {CodeUnknownAttribute, "manufacturers"}, {CodeUnknownAttribute, "cpu.cores_min"}, {CodeUnknownAttribute, "price"},
		}},
		"state and holder come on top": {Facts{Server: failed, Bound: true}, wanted, []Reason{
			{CodeSite, "sites"}, {CodeManufacturer, "manufacturers"}, {CodeCores, "cpu.cores_min"}, {CodePrice, "price"}, {Code: CodeStateFailed}, {Code: CodeBound},
		}},
		"both lists of sites":                             {Facts{Server: ready}, Requirements{Sites: []string{"HEL1"}, ExcludeSites: []string{"FSN1"}}, []Reason{{CodeSite, "sites"}, {CodeSite, "exclude_sites"}}},
		"another currency is not compared with the limit": {Facts{Server: known}, Requirements{Price: &PriceLimit{Currency: "USD", MonthlyMax: new(inventory.Amount(1))}}, []Reason{{CodeCurrencyMismatch, "price"}}},
		"a value that differs outweighs one that lacks":   {Facts{Server: known}, Requirements{Attributes: map[string]string{"tier": "silver", "row": "1"}}, []Reason{{CodeAttribute, "attributes"}}},
		"a value that lacks":                              {Facts{Server: known}, Requirements{Attributes: map[string]string{"tier": "gold", "row": "1"}}, []Reason{{CodeUnknownAttribute, "attributes"}}},
		"texts are compared exactly":                      {Facts{Server: ready}, Requirements{Sites: []string{"fsn1", "FSN1 "}}, []Reason{{CodeSite, "sites"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Judge(&tt.wanted, &tt.facts)
			require.Equal(t, tt.want, v.Reasons())
			require.Equal(t, len(tt.want) == 0, v.Eligible())
		})
	}
}

// A server is eligible or has at least one reason; each reason can be told to people; only state ready is for sale; and
// without its holder it matches if nothing else speaks against it.
//
// Requirements: R33
func TestVerdicts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f, wanted := drawFacts(rt, 1), drawRequirements(rt)
		v := Judge(&wanted, &f)
		require.Zero(rt, v.Fails&v.Unknown, "one rule says one thing")
		require.Equal(rt, v.Eligible(), len(v.Reasons()) == 0)
		for _, reason := range v.Reasons() {
			sentence, remedy := Describe(reason)
			require.NotEmpty(rt, sentence, "%+v", reason)
			require.NotEmpty(rt, remedy, "%+v", reason)
		}
		if v.Eligible() {
			require.True(rt, f.Server.State.Sellable())
			require.False(rt, f.Held || f.Bound)
		}
		free := f
		free.Held, free.Bound = false, false
		require.Equal(rt, Judge(&wanted, &free).Eligible(), v.Matches())
	})
}

// What an order leaves open never rejects: asking for less makes no server worse.
//
// Requirements: R32
func TestAskingForNothingLeavesStatesAndHolders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := drawFacts(rt, 1)
		for _, reason := range Judge(&Requirements{}, &f).Reasons() {
			require.Empty(rt, reason.Requirement)
		}
	})
}
