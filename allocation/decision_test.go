package allocation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/inventory"
)

// A decision freezes the reasons of every server up to the limit, and beyond it a marked sample that covers the
// inventory from end to end.
//
// Requirements: R38
func TestFreeze(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		servers, frozen int
		sampled         bool
	}{
		"an empty inventory":       {0, 0, false},
		"one server":               {1, 1, false},
		"exactly the limit":        {MaxFrozen, MaxFrozen, false},
		"one more than the limit":  {MaxFrozen + 1, MaxFrozen/2 + 1, true},
		"twice the limit":          {2 * MaxFrozen, MaxFrozen, true},
		"far more than the limit":  {100_000, MaxFrozen, true},
		"no multiple of the limit": {100_001, 1961, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := make([]Facts, tt.servers)
			for i := range facts {
				facts[i].Server = inventory.Server{ID: inventory.ServerID(fmt.Sprint(i)), Name: "m", Site: "FSN1", State: inventory.StateFailed, Version: 1}
			}
			pack := indexOf(facts).overview(&Requirements{}, "", MaxScanned+1, nobodyTries).frozen
			list, err := pack.Unpack()
			require.NoError(t, err)
			require.Equal(t, tt.sampled, list.Sampled)
			require.Len(t, list.Candidates, tt.frozen)
			step := 1
			if tt.sampled {
				step = (tt.servers + MaxFrozen - 1) / MaxFrozen
			}
			for i, c := range list.Candidates {
				require.Equal(t, FrozenCandidate{
					Server: inventory.ServerID(fmt.Sprint(i * step)), Name: "m", Site: "FSN1", Reasons: []Reason{{Code: CodeStateFailed}},
				}, c)
			}
			if tt.frozen > 0 {
				require.Less(t, tt.servers-1-(tt.frozen-1)*step, step, "the sample reaches the end")
			}
		})
	}
}

// Why a server was chosen is told in a sentence and in numbers, with whatever was better ranked and not to be had.
//
// Requirements: R38
func TestExplainChoice(t *testing.T) {
	t.Parallel()
	facts := []Facts{{Server: inventory.Server{ID: "srv_1", Name: "web-01", State: inventory.StateReady, Memory: inventory.Memory{MiB: 7}}}}
	walked := []Walked{{Outcome: TrySkipped}, {Outcome: TrySkipped}, {Outcome: TryStale}, {Outcome: TryLost}}

	choice := explainChoice(Candidate{Server: &facts[0].Server, Rank: 5}, 2, 1, walked)
	walked[0].Outcome = TryLost
	require.Equal(t, []Walked{{Outcome: TrySkipped}, {Outcome: TrySkipped}, {Outcome: TryStale}, {Outcome: TryLost}}, choice.PassedOver, "a copy")
	choice.PassedOver = nil
	require.Equal(t, Choice{
		Code: CodeChosen, Rank: 5, Servers: 2, Eligible: 1, Size: 7,
		Text: "Of 2 servers, 1 met every requirement; web-01 was number 5 of them: the smallest machine that fits first, then the cheapest, then an order that differs for each request." +
			" Passed over: 2 taken by another order at that moment, 1 no longer fitting when it was locked, 1 lost to another order a moment earlier.",
	}, choice)

	unnamed := Candidate{Server: &inventory.Server{ID: "srv_9"}, Rank: 1}
	require.Contains(t, explainChoice(unnamed, 2, 1, nil).Text, "srv_9 was number 1 of them")
	require.NotContains(t, explainChoice(unnamed, 2, 1, nil).Text, "Passed over")
}

// The two kinds of refusal tell people to do different things, and each cause says its own.
//
// Requirements: R36, R37
func TestSentences(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 14, 10, 15, 0, 0, time.UTC)
	nearest := &Nearest{Text: "Without the requirement \"sites\" 2 servers would fit at once."}
	tests := map[string]struct {
		decision Decision
		want     []string
	}{
		"reserved":         {Decision{Outcome: OutcomeReserved, Choice: &Choice{Text: "Because."}}, []string{"Because."}},
		"inventory empty":  {Decision{Outcome: OutcomeNoCapacity, Cause: CauseInventoryEmpty}, []string{"add some first"}},
		"nothing matches":  {Decision{Outcome: OutcomeNoCapacity, Cause: CauseNothingMatches, Servers: 1, Nearest: nearest}, []string{"None of 1 server meets", nearest.Text}},
		"all sold":         {Decision{Outcome: OutcomeNoCapacity, Cause: CauseAllSold, Nearest: nearest}, []string{"buy more hardware", nearest.Text}},
		"all held":         {Decision{Outcome: OutcomeNoCapacity, Cause: CauseAllHeld, NextExpiryAt: &at}, []string{"2026-03-14T10:15:00Z"}},
		"same key":         {Decision{Outcome: OutcomeContended, Cause: CauseSameKey}, []string{"same Idempotency-Key", "shortly"}},
		"same order line":  {Decision{Outcome: OutcomeContended, Cause: CauseSameOrderLine}, []string{"same order line", "try again shortly"}},
		"servers taken":    {Decision{Outcome: OutcomeContended, Cause: CauseServersTaken, Eligible: 3}, []string{"3 servers", "try again shortly"}},
		"scan limit":       {Decision{Outcome: OutcomeContended, Cause: CauseScanLimit}, []string{"25 servers", "more fit that were not tried", "try again shortly"}},
		"attempt limit":    {Decision{Outcome: OutcomeContended, Cause: CauseAttemptLimit}, []string{"5 servers in a row", "try again shortly"}},
		"hold limit":       {Decision{Outcome: OutcomeHoldLimit}, []string{"convert or cancel"}},
		"order line held":  {Decision{Outcome: OutcomeOrderLineHeld}, []string{"already has a server"}},
		"feature disabled": {Decision{Outcome: OutcomeFeatureDisabled}, []string{"switched off"}},
	}
	told := map[string]string{}
	for name, tt := range tests {
		text := tt.decision.sentence()
		for _, want := range tt.want {
			require.Contains(t, text, want, name)
		}
		if tt.decision.Outcome == OutcomeNoCapacity {
			require.NotContains(t, text, "try again", name)
		}
		if tt.decision.Outcome == OutcomeContended {
			require.NotContains(t, text, "buy", name)
		}
		require.Empty(t, told[text], "%s says the same as %s", name, told[text])
		told[text] = name
	}
}

// Only what ended without a reservation is a refusal.
//
// Requirements: R37
func TestRefused(t *testing.T) {
	t.Parallel()
	for code, refused := range map[OutcomeCode]bool{
		OutcomeReserved: false, OutcomeReplayed: false, OutcomeExisting: false, OutcomeNoCapacity: true, OutcomeContended: true,
		OutcomeHoldLimit: true, OutcomeOrderLineHeld: true, OutcomeFeatureDisabled: true,
	} {
		require.Equal(t, refused, (&Outcome{Code: code}).Refused(), code)
	}
}

// Between two walks a request pauses for a few milliseconds that differ, longer with each walk, and never for long.
//
// Requirements: R20
func TestPauseBefore(t *testing.T) {
	t.Parallel()
	different := map[time.Duration]bool{}
	for range 100 {
		for _, walk := range []int{1, 2, 20, 1000, 1 << 30} {
			pause := pauseBefore(walk)
			require.GreaterOrEqual(t, pause, min(time.Duration(walk)*5*time.Millisecond, 100*time.Millisecond))
			require.Less(t, pause, 200*time.Millisecond)
			different[pause] = true
		}
	}
	require.Greater(t, len(different), 100)
}
