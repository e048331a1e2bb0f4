package allocation

import (
	"cmp"
	"iter"
	"slices"

	"allocator/inventory"
)

// Rejected is a server that does not fit, with everything that speaks against it.
type Rejected struct {
	Server  inventory.ServerID
	Name    string
	Site    string
	Verdict Verdict
}

// Ranked yields the servers that fit, in the order in which they would be tried. Of their records it has what orders can
// ask for, the name and the place. It may be read more than once, and by several at the same time; nothing is locked
// while a server is being looked at.
func (l *listing) Ranked() iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		rank := 0
		for m, own := range l.named(slices.Values(l.ranked)) {
			rank++
			s := l.kinds[l.kindOf[m]].facts.Server
			s.ID, s.Name, s.Rack, s.Position = l.servers[m].id, own.name, own.rack, own.position
			if !yield(Candidate{Server: &s, Rank: rank}) {
				return
			}
		}
	}
}

// Rejected yields the others, each once, in the order of their ids. It may be read as Ranked may.
func (l *listing) Rejected() iter.Seq[Rejected] {
	return func(yield func(Rejected) bool) {
		for m, own := range l.named(l.rejected()) {
			r := Rejected{
				Server: l.servers[m].id, Name: own.name, Site: l.kinds[l.kindOf[m]].facts.Server.Site, Verdict: l.verdict(m),
			}
			if !yield(r) {
				return
			}
		}
	}
}

// rejected yields their numbers.
func (l *listing) rejected() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for m := range l.byID() {
			if !l.verdict(m).Eligible() && !yield(m) {
				return
			}
		}
	}
}

// byID yields every server in the order of the ids, in which all but those that came late stand already.
func (l *listing) byID() iter.Seq[int32] {
	numbers := func(yield func(int32) bool) {
		for i := range l.servers {
			if !yield(int32(i)) {
				return
			}
		}
	}
	if l.sorted() {
		return numbers
	}
	return slices.Values(slices.SortedFunc(numbers, func(a, b int32) int {
		return cmp.Compare(l.servers[a].id, l.servers[b].id)
	}))
}

func (l *listing) sorted() bool {
	for i := 1; i < len(l.servers); i++ {
		if l.servers[i-1].id > l.servers[i].id {
			return false
		}
	}
	return true
}

// namedPage is for how many servers the index is locked at once.
const namedPage = 256

// named is what a server is called and where it stands, which may change.
type named struct{ name, rack, position string }

// named adds that to servers. It reads a page ahead, and what is done with a server is done with nothing locked.
func (l *listing) named(members iter.Seq[int32]) iter.Seq2[int32, named] {
	return func(yield func(int32, named) bool) {
		page := make([]int32, 0, namedPage)
		names := make([]named, 0, namedPage)
		pass := func() bool {
			names = l.read(page, names[:0])
			for i, m := range page {
				if !yield(m, names[i]) {
					return false
				}
			}
			page = page[:0]
			return true
		}
		for m := range members {
			if page = append(page, m); len(page) == namedPage && !pass() {
				return
			}
		}
		pass()
	}
}

func (l *listing) read(page []int32, into []named) []named {
	l.index.mu.RLock()
	defer l.index.mu.RUnlock()
	for _, m := range page {
		e := &l.servers[m]
		into = append(into, named{e.name, e.rack, e.position})
	}
	return into
}
