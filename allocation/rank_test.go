package allocation

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/inventory"
)

// sized is a server of so many MiB, which is all that makes its size.
func sized(id string, mib int64, price *inventory.Price) *Facts {
	return &Facts{Server: inventory.Server{ID: inventory.ServerID(id), Memory: inventory.Memory{MiB: mib}, Price: price}}
}

func ids(ranked []Candidate) []string {
	list := make([]string, len(ranked))
	for i, c := range ranked {
		list[i] = string(c.Server.ID)
	}
	return list
}

// The smallest machine that fits comes first, then the cheapest; what has no price comes last among equals in size.
//
// Requirements: R35
func TestRank(t *testing.T) {
	t.Parallel()
	eur := func(amount inventory.Amount) *inventory.Price {
		return &inventory.Price{Amount: amount, Currency: "EUR"}
	}
	usd := func(amount inventory.Amount) *inventory.Price {
		return &inventory.Price{Amount: amount, Currency: "USD"}
	}
	tests := map[string]struct {
		servers []*Facts
		want    []string
	}{
		"nothing":                        {nil, []string{}},
		"smaller before cheaper":         {[]*Facts{sized("large", 2, eur(1)), sized("small", 1, eur(9))}, []string{"small", "large"}},
		"of equal size the cheaper":      {[]*Facts{sized("dear", 1, eur(9)), sized("cheap", 1, eur(1))}, []string{"cheap", "dear"}},
		"for nothing before for little":  {[]*Facts{sized("little", 1, eur(1)), sized("gift", 1, eur(0))}, []string{"gift", "little"}},
		"without a price last":           {[]*Facts{sized("unpriced", 1, nil), sized("dear", 1, eur(9))}, []string{"dear", "unpriced"}},
		"unpriced but smaller is before": {[]*Facts{sized("large", 2, eur(1)), sized("unpriced", 1, nil)}, []string{"unpriced", "large"}},
		"currencies are kept apart":      {[]*Facts{sized("usd", 1, usd(1)), sized("eur 9", 1, eur(9)), sized("eur 8", 1, eur(8))}, []string{"eur 8", "eur 9", "usd"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, key := range []string{"", "k", "another key"} {
				require.Equal(t, tt.want, ids(rank(tt.servers, key)), "key %q", key)
			}
		})
	}
}

// The order is total: in whatever order a replica reads the inventory, the same key tries the same servers in the same
// order, each once, and never a larger or dearer one before a smaller or cheaper one.
//
// Requirements: R35
func TestRankIsTheSameOnEveryReplica(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		facts := drawSnapshot(rt).Facts
		eligible := make([]*Facts, len(facts))
		for i := range facts {
			eligible[i] = &facts[i]
		}
		key := rapid.StringN(0, 8, 16).Draw(rt, "key")
		ranked := rank(eligible, key)
		shuffled := rapid.Permutation(eligible).Draw(rt, "order of reading")
		require.Equal(rt, ids(ranked), ids(rank(shuffled, key)))

		require.Len(rt, ranked, len(facts))
		seen := map[inventory.ServerID]bool{}
		for i, c := range ranked {
			require.Equal(rt, i+1, c.Rank)
			require.False(rt, seen[c.Server.ID], "ranked twice")
			seen[c.Server.ID] = true
			if i > 0 {
				require.LessOrEqual(rt, compareMerit(ranked[i-1].Server, c.Server), 0, "%+v before %+v", ranked[i-1].Server, c.Server)
			}
		}
	})
}

// compareMerit says in its own words what comes first: size, then price, unpriced last.
func compareMerit(a, b *inventory.Server) int {
	price := func(s *inventory.Server) string {
		if s.Price == nil {
			return "~" // behind every capital
		}
		return fmt.Sprintf("%s %020d", s.Price.Currency, s.Price.Amount)
	}
	return cmp.Or(cmp.Compare(a.Size(), b.Size()), cmp.Compare(price(a), price(b)))
}

// Different requests begin at different equals, so that a crowd does not queue at the head of one list: of 1000 keys
// over 10 equals each comes first about a hundred times, and each stands in every place.
//
// Requirements: R16
func TestEqualsAreSpreadByKey(t *testing.T) {
	t.Parallel()
	const servers, keys = 10, 1000
	equals := make([]*Facts, servers)
	for i := range equals {
		equals[i] = sized(fmt.Sprintf("srv_%032x", i), 1024, nil)
	}
	places := map[string]*[servers]int{}
	for k := range keys {
		for i, id := range ids(rank(equals, fmt.Sprintf("order-%d", k))) {
			if places[id] == nil {
				places[id] = &[servers]int{}
			}
			places[id][i]++
		}
	}
	require.Len(t, places, servers)
	for id, counts := range places {
		for place, n := range counts {
			require.InDelta(t, keys/servers, n, 45, "%s in place %d", id, place+1) // more than four standard deviations
		}
	}
}
