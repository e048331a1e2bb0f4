package allocation

import (
	"cmp"
	"hash/fnv"
	"iter"
	"slices"

	"allocator/inventory"
)

// equal is one of several servers that rank alike.
type equal struct {
	id   inventory.ServerID
	hash uint64 // hashID of id
	at   int    // where the caller finds it
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

// manyEquals is the number of equals above which their order is probed rather than sorted: sorting costs as much as
// there are equals, and a walk looks at 25 of them.
const manyEquals = 256

// orderEquals orders servers that rank alike: by a hash of key and id while they are few. Of many, the i-th is the one
// whose hash is nearest (by XOR) to the i-th probe of the key and that was not named before; behind the probes that a
// walk can use, the rest stands by its hash alone. The catalog finds the same without looking at all of them.
func orderEquals(equals []equal, key string) []equal {
	seed := hashText(key)
	if len(equals) <= manyEquals {
		scatterAll(equals, seed)
		slices.SortFunc(equals, compareEquals)
		return equals
	}
	for i := range MaxScanned + 1 {
		target := probe(seed, i)
		nearest := slices.MinFunc(equals[i:], func(a, b equal) int {
			return cmp.Or(cmp.Compare(a.hash^target, b.hash^target), cmp.Compare(a.id, b.id))
		})
		at := i + slices.Index(equals[i:], nearest)
		equals[i], equals[at] = equals[at], equals[i]
	}
	slices.SortFunc(equals[MaxScanned+1:], func(a, b equal) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id))
	})
	return equals
}

// firstEquals yields equals in the order of orderEquals. Few of them are put in order only as far as the caller looks,
// which is not far.
func firstEquals(equals []equal, key string) iter.Seq[equal] {
	if len(equals) > manyEquals {
		return slices.Values(orderEquals(equals, key))
	}
	return func(yield func(equal) bool) {
		scatterAll(equals, hashText(key))
		for rest := equals; len(rest) > 0; rest = rest[1:] {
			first := 0
			for i := range rest {
				if compareEquals(rest[i], rest[first]) < 0 {
					first = i
				}
			}
			rest[0], rest[first] = rest[first], rest[0]
			if !yield(rest[0]) {
				return
			}
		}
	}
}

func scatterAll(equals []equal, seed uint64) {
	for i := range equals {
		equals[i].hash = scatter(seed ^ equals[i].hash)
	}
}

func compareEquals(a, b equal) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id))
}

// probe is the i-th place at which a key looks for its servers.
func probe(seed uint64, i int) uint64 { return scatter(seed + uint64(i)*0x9e3779b97f4a7c15) } //nolint:gosec // i is small

func hashID(id inventory.ServerID) uint64 { return scatter(hashText(string(id))) }

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
