package allocation

import (
	"slices"
	"sync"

	"allocator/inventory"
)

// packs are the parts of a frozen list that many decisions share, packed once.
type packs struct {
	sync.Mutex // among those who read the index; those who change it have it for themselves

	roster uint64 // that the rest is of
	step   int    // every step-th server is in it
	names  Blob   // the packed roster
	kinds  []int32

	base    Blob
	changed []int32 // servers whose status is, or was for a moment, another one than in base
}

// maxChanged is how many changes a decision carries before the statuses are packed anew. A base of 2,000 servers is
// some kilobytes, which would be most of what a reservation writes.
const maxChanged = 192

// note remembers that a server's status changes. The index is locked for writing.
func (p *packs) note(at int32) {
	if p.base.Hash == nil || int(at)%p.step != 0 || slices.Contains(p.changed, at) {
		return
	}
	if p.changed = append(p.changed, at); len(p.changed) > maxChanged {
		p.base = Blob{}
	}
}

// freeze packs what this pass saw. Of a large inventory it keeps every step-th server, so that the sample covers it
// from end to end; the walked candidates are in the decision itself in any case.
func (p *pass) freeze() FrozenPack {
	p.packs.Lock()
	defer p.packs.Unlock()
	if p.packs.roster != p.roster || p.packs.names.Body == nil {
		p.packRoster()
	}
	pack := FrozenPack{Roster: p.packs.names, Sampled: p.packs.step > 1}
	p.packing.Do(func() { p.reasons = p.packReasons() })
	pack.Reasons = p.reasons
	if p.own {
		pack.Statuses = p.runs(p.symbol)
		return pack
	}
	if p.packs.base.Hash == nil {
		p.packs.base, p.packs.changed = newBlob(basePack{V: packVersion, Runs: p.runs(p.statusSymbol)}), nil
	}
	pack.Base, pack.Statuses = p.packs.base, p.changes()
	return pack
}

// packRoster packs which servers there are. It numbers their kinds in the order of their first member.
func (p *pass) packRoster() {
	step := max(1, (len(p.servers)+MaxFrozen-1)/MaxFrozen)
	roster := rosterPack{V: packVersion}
	number := map[int32]int{}
	var kinds []int32
	for i := 0; i < len(p.servers); i += step {
		e := &p.servers[i]
		if _, known := number[e.kind]; !known {
			number[e.kind] = len(kinds)
			kinds = append(kinds, e.kind)
		}
		roster.Servers = append(roster.Servers, rosterServer{e.id, e.name, p.kinds[e.kind].facts.Server.Site, number[e.kind]})
	}
	p.packs.roster, p.packs.step, p.packs.names, p.packs.kinds = p.roster, step, newBlob(roster), kinds
	p.packs.base = Blob{}
}

// packReasons packs what speaks against each kind of the roster, and what the symbols mean.
func (p *pass) packReasons() Blob {
	reasons := reasonsPack{V: packVersion, Kinds: make([][]Reason, len(p.packs.kinds))}
	for i, k := range p.packs.kinds {
		reasons.Kinds[i] = p.verdicts[k].Reasons()
	}
	for _, v := range ownSymbols {
		reasons.Own = append(reasons.Own, v.Reasons())
	}
	for _, s := range statusSymbols {
		reasons.Statuses = append(reasons.Statuses, statusVerdicts[s].Reasons())
	}
	return newBlob(reasons)
}

// runs lists the symbols of the roster's servers, equal neighbours together.
func (p *pass) runs(symbol func(e *entry) int) (runs []int) {
	for i := 0; i < len(p.servers); i += p.packs.step {
		s := symbol(&p.servers[i])
		if n := len(runs); n > 0 && runs[n-2] == s {
			runs[n-1]++
		} else {
			runs = append(runs, s, 1)
		}
	}
	return runs
}

// changes lists what is to be changed in the base, each place with its symbol.
func (p *pass) changes() []int {
	changes := make([]int, 0, 2*len(p.packs.changed))
	for _, at := range p.packs.changed {
		changes = append(changes, int(at)/p.packs.step, p.statusSymbol(&p.servers[at]))
	}
	return changes
}

// symbolOf numbers the statuses by their place in statusSymbols.
var symbolOf = func() map[status]int {
	numbers := map[status]int{}
	for i, s := range statusSymbols {
		numbers[s] = i
	}
	return numbers
}()

func (p *pass) statusSymbol(e *entry) int { return symbolOf[e.status] }

func (p *pass) symbol(e *entry) int {
	own := max(0, slices.Index(ownSymbols, p.ownVerdict(e)))
	return own*len(statusSymbols) + p.statusSymbol(e)
}

// statusVerdicts is what each status alone says against a server.
var statusVerdicts = func() map[status]Verdict {
	verdicts := map[status]Verdict{}
	for _, s := range statusSymbols {
		f := Facts{Server: inventory.Server{State: s.state}, Held: s.hold == held, Bound: s.hold == bound}
		verdicts[s] = judge(statusRules, nil, &f)
	}
	return verdicts
}()
