package allocation

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/inventory"
)

// The complete list: every server is in it, each one left out with a reason, and the counts are those of the list.
//
// Requirements: R32, R33
func TestSurveyCountsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seen, wanted := drawSnapshot(rt), drawRequirements(rt)
		s := survey(seen, &wanted)
		require.Len(rt, s.Judged, len(seen.Facts))

		counted, rejected := map[Reason]int{}, 0
		for i, j := range s.Judged {
			require.Equal(rt, seen.Facts[i].Server.ID, j.Facts.Server.ID, "the store's order is kept")
			if len(j.Verdict.Reasons()) > 0 {
				rejected++
			}
			for _, reason := range j.Verdict.Reasons() {
				counted[reason]++
			}
		}
		require.Equal(rt, len(seen.Facts), len(s.eligible)+rejected)

		counts := s.Counts()
		require.NotNil(rt, counts, "an empty list, since it is frozen as one")
		told := map[Reason]int{}
		for i, c := range counts {
			told[c.Reason] += c.Servers
			require.NotEmpty(rt, c.Text)
			require.NotEmpty(rt, c.Remedy)
			require.True(rt, i == 0 || counts[i-1].Servers >= c.Servers, "the most frequent first")
		}
		require.Equal(rt, counted, told)
	})
}

// Nearest is exact: it is the requirement without which, judged anew, the most servers would be eligible.
//
// Requirements: R32
func TestNearestAsJudgingAnewSays(t *testing.T) {
	t.Parallel()
	hits := 0
	rapid.Check(t, func(rt *rapid.T) {
		seen, wanted := drawSnapshot(rt), drawRequirements(rt)
		before := survey(seen, &wanted)
		var want *Nearest
		for _, rule := range rules {
			less, asked := without(rt, wanted, rule.Requirement)
			if !asked {
				continue
			}
			gain := len(survey(seen, &less).eligible) - len(before.eligible)
			if gain > 0 && (want == nil || gain > want.Servers) {
				want = &Nearest{Requirement: rule.Requirement, Servers: gain}
			}
		}
		got := before.Nearest()
		if want == nil {
			require.Nil(rt, got)
			return
		}
		hits++
		require.NotNil(rt, got, "%+v", want)
		require.Equal(rt, want.Requirement, got.Requirement)
		require.Equal(rt, want.Servers, got.Servers)
		require.Contains(rt, got.Text, `"`+want.Requirement+`"`)
	})
	require.Greater(t, hits, 2, "hardly any case had something to relax")
}

// without takes one requirement away through JSON, as a caller would, and tells whether it was asked at all.
func without(rt *rapid.T, r Requirements, path string) (Requirements, bool) {
	if path == "" {
		return r, false
	}
	text, err := json.Marshal(r)
	require.NoError(rt, err)
	var body map[string]any
	require.NoError(rt, json.Unmarshal(text, &body))
	part, name, nested := strings.Cut(path, ".")
	within := body
	if nested {
		if within, _ = body[part].(map[string]any); within == nil {
			return r, false
		}
	} else {
		name = part
	}
	if _, asked := within[name]; !asked {
		return r, false
	}
	delete(within, name)
	text, err = json.Marshal(body)
	require.NoError(rt, err)
	var less Requirements
	require.NoError(rt, json.Unmarshal(text, &less))
	return less, true
}

// Nothing to sell has four causes, each with another remedy.
//
// Requirements: R36
func TestWhyThereIsNothing(t *testing.T) {
	t.Parallel()
	server := func(site string, state inventory.State) inventory.Server {
		return inventory.Server{Site: site, State: state}
	}
	there, elsewhere := server("FSN1", inventory.StateReady), server("HEL1", inventory.StateReady)
	held := func(until int64) Facts { return Facts{Server: there, Held: true, HeldUntil: until} }
	sold := Facts{Server: there, Bound: true}
	tests := map[string]struct {
		facts []Facts
		cause Cause
		next  int64 // Unix microseconds
	}{
		"no servers at all":                        {nil, CauseInventoryEmpty, 0},
		"none of the kind":                         {[]Facts{{Server: elsewhere}}, CauseNothingMatches, 0},
		"the only one of the kind is broken":       {[]Facts{{Server: server("FSN1", inventory.StateFailed)}}, CauseNothingMatches, 0},
		"a held one of another kind does not help": {[]Facts{{Server: elsewhere, Held: true, HeldUntil: 5}}, CauseNothingMatches, 0},
		"all of the kind are sold":                 {[]Facts{sold, {Server: elsewhere}}, CauseAllSold, 0},
		"one is held, and may come back":           {[]Facts{sold, held(7), sold}, CauseAllHeld, 7},
		"of several holds the first to run out":    {[]Facts{held(9), held(7), held(8)}, CauseAllHeld, 7},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cause, next := survey(Snapshot{Facts: tt.facts}, &Requirements{Sites: []string{"FSN1"}}).emptyHanded()
			require.Equal(t, tt.cause, cause)
			if tt.next == 0 {
				require.Nil(t, next)
				return
			}
			require.Equal(t, time.UnixMicro(tt.next).UTC(), *next)
		})
	}
}

// A sentence says what one requirement costs.
//
// Requirements: R36
func TestNearestInWords(t *testing.T) {
	t.Parallel()
	facts := []Facts{
		{Server: inventory.Server{Site: "HEL1", State: inventory.StateReady}},
		{Server: inventory.Server{Site: "HEL1", State: inventory.StateReady}, Held: true},
	}
	wanted := Requirements{Sites: []string{"FSN1"}}
	require.Equal(t, &Nearest{
		Requirement: "sites", Servers: 1, Text: `Without the requirement "sites" 1 server would fit at once.`,
	}, survey(Snapshot{Facts: facts}, &wanted).Nearest())
}
