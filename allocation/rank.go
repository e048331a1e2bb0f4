package allocation

import (
	"cmp"
	"hash/fnv"
	"slices"

	"allocator/inventory"
)

// rank orders the servers that fit: the smallest machine first, then the cheapest, then equals in an order that the
// request's key decides, so that the same request on the same data chooses the same server while different requests
// spread over equals instead of queueing for the same one.
func rank(eligible []*Facts, key string) []Candidate {
	seed := hashText(key)
	type keyed struct {
		facts *Facts
		size  int64
		tie   uint64
	}
	order := make([]keyed, len(eligible))
	for i, f := range eligible {
		order[i] = keyed{f, f.Server.Size(), scatter(seed ^ hashText(string(f.Server.ID)))}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		return cmp.Or(
			cmp.Compare(a.size, b.size),
			comparePrice(a.facts.Server.Price, b.facts.Server.Price),
			cmp.Compare(a.tie, b.tie),
			cmp.Compare(a.facts.Server.ID, b.facts.Server.ID),
		)
	})
	ranked := make([]Candidate, len(order))
	for i := range order {
		ranked[i] = Candidate{Server: &order[i].facts.Server, Rank: i + 1}
	}
	return ranked
}

// comparePrice puts the cheaper first and the unpriced last. Amounts of different currencies cannot be compared; they
// are kept apart by currency, so that the order stays the same on every replica.
func comparePrice(a, b *inventory.Price) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Or(cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Amount, b.Amount))
}

func hashText(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // a hash never fails
	return h.Sum64()
}

// scatter is the finalizer of SplitMix64: it spreads the weak low bits of FNV over the whole word.
func scatter(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
