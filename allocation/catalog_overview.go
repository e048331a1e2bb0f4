package allocation

import (
	"cmp"
	"iter"
	"slices"

	"allocator/inventory"
)

// overview judges the whole inventory in memory: kinds at once, then what differs within a kind.
//
// It names the first most candidates that nobody is trying.
func (x *index) overview(wanted *Requirements, key string, most int, busy func(inventory.ServerID) bool) *overview {
	x.mu.RLock()
	defer x.mu.RUnlock()
	o := &overview{seenAt: x.now, version: x.horizon.Next, servers: len(x.servers)}
	pass := x.pass(wanted, key)
	o.counts = pass.counts()
	o.ranked, o.eligible = pass.best(most, busy)
	if o.eligible == 0 {
		o.cause, o.next = pass.emptyHanded()
		o.nearest = nearestOf(pass.eligibleWithout)
	}
	o.frozen, o.wanted = pass.freeze(), pass.judgment.wanted
	return o
}

// asksOwn tells whether the order asks for what servers of one kind can differ in.
func (r *Requirements) asksOwn() bool { return len(r.Racks) > 0 || len(r.Servers) > 0 }

// pass is one request's look at the catalog, which is locked for reading.
type pass struct {
	*index
	*judgment
	wanted *Requirements
	key    string
	seed   uint64
	own    bool
}

// pass begins a look. The index is locked for reading.
func (x *index) pass(wanted *Requirements, key string) *pass {
	return &pass{index: x, judgment: x.judge(wanted), wanted: wanted, key: key, seed: hashText(key), own: wanted.asksOwn()}
}

// ownVerdict judges a server's rack and id.
func (p *pass) ownVerdict(e *entry) Verdict {
	if !p.own {
		return Verdict{}
	}
	f := Facts{Server: inventory.Server{ID: e.id, Rack: e.rack}}
	return judge(ownRules, p.wanted, &f)
}

// counts adds up the reasons: of each kind times its servers, of each status times its servers, and of racks and ids
// one by one if they were asked for.
func (p *pass) counts() []ReasonCount {
	t := p.ofKinds.clone()
	for s, n := range p.totals {
		t.add(statusVerdicts[s], n)
	}
	if p.own {
		for i := range p.servers {
			t.add(p.ownVerdict(&p.servers[i]), 1)
		}
	}
	return t.counts()
}

// hit is a server that fits, with its place in the order of trying.
type hit struct {
	id         inventory.ServerID
	name, rack string
	kind       *kind
	rank       int // from 1
	lapsed     bool
}

// candidate puts the server together from its kind and what is its own.
func (h *hit) candidate() Candidate {
	s := h.kind.facts.Server
	s.ID, s.Name, s.Rack = h.id, h.name, h.rack
	return Candidate{Server: &s, Rank: h.rank}
}

// best returns the n best candidates and the number of all eligible ones. Those that another request of this process is
// trying at this moment come last.
func (p *pass) best(n int, busy func(inventory.ServerID) bool) ([]hit, int) {
	eligible := p.free()
	idle := make([]hit, 0, min(n, eligible))
	var others []hit
	rank := 0
	for kinds := range p.alike() {
		if len(idle) == n {
			break
		}
		for member := range p.orderEquals(kinds) {
			if rank++; len(idle) == n {
				break
			}
			e := &p.servers[member]
			h := hit{id: e.id, name: e.name, rack: e.rack, kind: p.kinds[e.kind], rank: rank, lapsed: e.lapsed}
			if busy(e.id) {
				others = append(others, h)
			} else {
				idle = append(idle, h)
			}
		}
	}
	idle = append(idle, others...)
	return idle[:min(len(idle), n)], eligible
}

// free counts the servers that fit and are free.
func (p *pass) free() (eligible int) {
	if p.own {
		for i := range p.servers {
			if e := &p.servers[i]; e.status.free() && p.verdicts[e.kind].Eligible() && p.ownVerdict(e).Eligible() {
				eligible++
			}
		}
		return eligible
	}
	for _, k := range p.fitting {
		eligible += k.nFree
	}
	return eligible
}

// alike yields the kinds that fit and have free servers, best first, those that rank alike together.
func (p *pass) alike() iter.Seq[[]*kind] {
	return func(yield func([]*kind) bool) {
		var same []*kind
		for _, k := range p.fitting {
			if k.nFree == 0 {
				continue
			}
			if len(same) > 0 && compareKinds(same[0], k) != 0 {
				if !yield(same) {
					return
				}
				same = same[:0]
			}
			same = append(same, k)
		}
		if len(same) > 0 {
			yield(same)
		}
	}
}

func compareKinds(a, b *kind) int {
	return cmp.Or(cmp.Compare(a.size, b.size), comparePrice(a.facts.Server.Price, b.facts.Server.Price))
}

// orderEquals yields the free servers of kinds that rank alike, in the order that the function of the same name gives to a
// list of them; of many it yields the first, which are more than a walk may scan.
func (p *pass) orderEquals(kinds []*kind) iter.Seq[int32] {
	many := 0
	for _, k := range kinds {
		many += k.nFree
	}
	if p.own || many <= manyEquals {
		return p.fewEquals(kinds, many)
	}
	return func(yield func(int32) bool) {
		chosen := make([]int32, 0, MaxScanned+1)
		for i := range MaxScanned + 1 {
			next := p.nearest(kinds, probe(p.seed, i), chosen)
			if chosen = append(chosen, next); !yield(next) {
				return
			}
		}
	}
}

// fewEquals looks at all of them, and orders as many as are asked for.
func (p *pass) fewEquals(kinds []*kind, most int) iter.Seq[int32] {
	all := make([]equal, 0, most)
	for _, k := range kinds {
		for member := range k.freeMembers() {
			if e := &p.servers[member]; p.ownVerdict(e).Eligible() {
				all = append(all, equal{id: e.id, hash: e.hash, at: int(member)})
			}
		}
	}
	return func(yield func(int32) bool) {
		for next := range firstEquals(all, p.key) {
			if !yield(int32(next.at)) { //nolint:gosec // a member's number, put there above
				return
			}
		}
	}
}

// nearest finds the free server nearest to a probe that is not among the chosen. There are more free ones than chosen.
func (p *pass) nearest(kinds []*kind, target uint64, chosen []int32) int32 {
	best, bestDistance := int32(-1), uint64(0)
	for _, k := range kinds {
		k.nearest(target, func(member int32, distance uint64) bool {
			if slices.Contains(chosen, member) {
				return true
			}
			closer := distance < bestDistance || distance == bestDistance && p.servers[member].id < p.servers[max(best, 0)].id
			if best < 0 || closer {
				best, bestDistance = member, distance
			}
			return false
		})
	}
	return best
}

// eligibleWithout counts the free servers that only these rules speak against.
func (p *pass) eligibleWithout(rules uint64) (n int) {
	if p.own {
		for i := range p.servers {
			e := &p.servers[i]
			v := p.verdicts[e.kind].and(p.ownVerdict(e))
			if e.status.free() && !v.Eligible() && v.all()&^rules == 0 {
				n++
			}
		}
		return n
	}
	for i, k := range p.kinds {
		if v := p.verdicts[i]; !v.Eligible() && v.all()&^rules == 0 {
			n += k.nFree
		}
	}
	return n
}
