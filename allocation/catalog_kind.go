package allocation

import (
	"iter"
	"math/bits"
	"sort"

	"allocator/inventory"
)

// kind is all servers of an organization that no requirement but those on rack and id can tell apart. Judging a kind
// judges every server of it, so that the cost of a request depends on how many kinds there are and not on how many
// servers.
type kind struct {
	facts Facts // of every member, but for what is its own; always ready and free
	size  int64

	order []int32  // members by the hash of their id
	hash  []uint64 // of order[i]
	free  []uint64 // a bit for each place in order: ready, and nobody holds it
	nFree int

	cell  int32  // where its servers are, and of what model
	taken [3]int // members by what holds them
}

// count adds up what the members are.
func (k *kind) count() Count {
	c := Count{Servers: len(k.order), Free: k.nFree, Held: k.taken[held], Bound: k.taken[bound]}
	c.Out = k.taken[nobody] - k.nFree
	return c
}

// common takes away from a server what is its own, and gives it the state in which only its kind matters.
func common(s inventory.Server) inventory.Server {
	s.ID, s.Source, s.ExternalID, s.Name, s.Serial = "", "", "", "", ""
	s.Rack, s.Position = "", ""
	s.State, s.StateReason, s.Version = inventory.StateReady, "", 0
	s.CreatedAt, s.UpdatedAt = zeroTime, zeroTime
	return s
}

// place finds where a hash stands, or where it would.
func (k *kind) place(hash uint64) int {
	return sort.Search(len(k.hash), func(i int) bool { return k.hash[i] >= hash })
}

// setFree notes whether the member at a place can be reserved.
func (k *kind) setFree(place int, free bool) {
	word, bit := place/64, uint64(1)<<(place%64)
	if (k.free[word]&bit != 0) == free {
		return
	}
	k.free[word] ^= bit
	if free {
		k.nFree++
	} else {
		k.nFree--
	}
}

// freeMembers yields every free member.
func (k *kind) freeMembers() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for word, bit := range k.free {
			for ; bit != 0; bit &= bit - 1 {
				if !yield(k.order[word*64+bits.TrailingZeros64(bit)]) {
					return
				}
			}
		}
	}
}

// nearest visits free members in the order of hash XOR target until visit has had enough. That order is found without
// looking at all members: of two halves of a range of hashes, the one that agrees with the target in the bit that
// divides them comes first.
func (k *kind) nearest(target uint64, visit func(member int32, distance uint64) (more bool)) {
	k.walk(target, 0, len(k.hash), 63, visit)
}

// few is a range that is sorted rather than divided.
const few = 16

func (k *kind) walk(target uint64, lo, hi, bit int, visit func(int32, uint64) bool) bool {
	if !k.anyFree(lo, hi) {
		return true
	}
	if hi-lo <= few || bit < 0 {
		return k.visitSorted(target, lo, hi, visit)
	}
	middle := lo + sort.Search(hi-lo, func(i int) bool { return k.hash[lo+i]>>bit&1 == 1 })
	if target>>bit&1 == 0 {
		return k.walk(target, lo, middle, bit-1, visit) && k.walk(target, middle, hi, bit-1, visit)
	}
	return k.walk(target, middle, hi, bit-1, visit) && k.walk(target, lo, middle, bit-1, visit)
}

// anyFree looks whether a range of places has a free member.
func (k *kind) anyFree(lo, hi int) bool {
	for lo < hi {
		word := k.free[lo/64] >> (lo % 64)
		if n := 64 - lo%64; hi-lo < n {
			return word&(1<<(hi-lo)-1) != 0
		}
		if word != 0 {
			return true
		}
		lo += 64 - lo%64
	}
	return false
}

func (k *kind) visitSorted(target uint64, lo, hi int, visit func(int32, uint64) bool) bool {
	var places [64]int
	found := places[:0]
	for i := lo; i < hi; i++ {
		if k.free[i/64]>>(i%64)&1 == 1 {
			found = append(found, i)
		}
	}
	sort.Slice(found, func(a, b int) bool { return k.hash[found[a]]^target < k.hash[found[b]]^target })
	for _, i := range found {
		if !visit(k.order[i], k.hash[i]^target) {
			return false
		}
	}
	return true
}
