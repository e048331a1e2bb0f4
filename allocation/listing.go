package allocation

import (
	"cmp"
	"slices"
)

// listing is what an evaluation saw of every server: five bytes for each, and four more for each that fits. So it can be
// read for as long as it takes while the catalog goes on; a copy of the servers would be some hundred bytes each.
type listing struct {
	index    *index
	servers  []entry   // those that there were; all but id and hash is read under the lock of the index
	kinds    []*kind   // their facts never change
	verdicts []Verdict // of each kind
	kindOf   []int32   // of each server
	symbols  []uint8   // of each server: what speaks against itself, and its status
	ranked   []int32   // the servers that fit, best first
}

// symbolVerdicts is what each symbol of a server says against it, beside what its kind does.
var symbolVerdicts = func() (verdicts []Verdict) {
	for _, own := range ownSymbols {
		for _, s := range statusSymbols {
			verdicts = append(verdicts, own.and(statusVerdicts[s]))
		}
	}
	return verdicts
}()

// list notes how every server is judged. Servers are only ever added to the index, until it is cleared and begins another
// list of them, so a number in this one goes on to mean the same server.
func (p *pass) list() *listing {
	n := len(p.servers)
	l := &listing{
		index: p.index, servers: slices.Clip(p.servers), kinds: slices.Clip(p.kinds), verdicts: p.verdicts,
		kindOf: make([]int32, n), symbols: make([]uint8, n),
	}
	var last status
	lastSymbol := 0
	for i := range l.servers {
		e := &l.servers[i]
		if e.status != last || p.own {
			last, lastSymbol = e.status, p.symbol(e)
		}
		l.kindOf[i], l.symbols[i] = e.kind, uint8(lastSymbol) // there are fewer: a test counts them
	}
	return l
}

// verdict is everything that spoke against a server.
func (l *listing) verdict(i int32) Verdict {
	return l.verdicts[l.kindOf[i]].and(symbolVerdicts[l.symbols[i]])
}

// rank orders the servers that fit: the smallest machine first, then the cheapest, then equals in an order that the
// request's key decides, so that the same request on the same data chooses the same server while different requests
// spread over equals instead of queueing for the same one.
func (l *listing) rank(key string) {
	place, places := l.places()
	begins := make([]int32, places+1) // of each place; counted one further on
	for i := range l.kindOf {
		if at := l.placeOf(place, i); at >= 0 {
			begins[at+1]++
		}
	}
	for at := range places {
		begins[at+1] += begins[at]
	}
	l.ranked = make([]int32, begins[places])
	next := slices.Clone(begins)
	for i := range l.kindOf {
		if at := l.placeOf(place, i); at >= 0 {
			l.ranked[next[at]] = int32(i)
			next[at]++
		}
	}
	var equals []equal
	for at := range places {
		equals = l.orderEquals(l.ranked[begins[at]:begins[at+1]], key, equals[:0])
	}
}

// places numbers the kinds that fit by their place in the ranking, which those that rank alike share; -1 does not fit.
func (l *listing) places() (place []int32, places int32) {
	place = make([]int32, len(l.kinds))
	var fitting []int32
	for k := range l.kinds {
		if place[k] = -1; l.verdicts[k].Eligible() {
			fitting = append(fitting, int32(k))
		}
	}
	slices.SortFunc(fitting, func(a, b int32) int { return cmp.Or(compareKinds(l.kinds[a], l.kinds[b]), cmp.Compare(a, b)) })
	for i, k := range fitting {
		if i > 0 && compareKinds(l.kinds[fitting[i-1]], l.kinds[k]) != 0 {
			places++
		}
		place[k] = places
	}
	if len(fitting) > 0 {
		places++
	}
	return place, places
}

// placeOf is a server's place; -1 if it does not fit.
func (l *listing) placeOf(place []int32, i int) int32 {
	if !symbolVerdicts[l.symbols[i]].Eligible() {
		return -1
	}
	return place[l.kindOf[i]]
}

// orderEquals orders servers that rank alike. It gives back the buffer that it was lent.
func (l *listing) orderEquals(members []int32, key string, equals []equal) []equal {
	for _, m := range members {
		e := &l.servers[m]
		equals = append(equals, equal{id: e.id, hash: e.hash, at: int(m)})
	}
	for i, e := range orderEquals(equals, key) {
		members[i] = int32(e.at) //nolint:gosec // a server's number, put there above
	}
	return equals
}
