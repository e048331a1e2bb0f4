package allocation

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"

	"allocator/inventory"
)

// FrozenPack is what a decision keeps of the list that it saw, packed so that little is written for each decision: which
// servers there were and of what kinds, what spoke against each kind, and in which status each server was. The first
// two are the same for many decisions and stored once by their hash.
type FrozenPack struct {
	Roster   Blob
	Reasons  Blob
	Statuses []int // runs: symbol, length, symbol, length …
	Sampled  bool  // the inventory was larger than MaxFrozen
}

// Blob is content with its hash.
type Blob struct {
	Hash []byte
	Body []byte
}

func newBlob(content any) Blob {
	body := mustJSON(content)
	sum := sha256.Sum256(body)
	return Blob{Hash: sum[:], Body: body}
}

// packVersion numbers the shape of the three parts.
const packVersion = 1

// rosterPack is which servers were looked at.
type rosterPack struct {
	V       int            `json:"v"`
	Servers []rosterServer `json:"servers"`
}

type rosterServer struct {
	ID   inventory.ServerID `json:"id"`
	Name string             `json:"name"`
	Site string             `json:"site"`
	Kind int                `json:"kind"` // its number in reasonsPack.Kinds
}

// reasonsPack is what spoke against each kind, and what each symbol of a status means: symbol = own * len(Statuses) +
// status, an index into Own and one into Statuses.
type reasonsPack struct {
	V        int        `json:"v"`
	Kinds    [][]Reason `json:"kinds"`
	Own      [][]Reason `json:"own"`
	Statuses [][]Reason `json:"statuses"`
}

// statusSymbols lists every status that a server can be in; a position is a symbol.
var statusSymbols = func() (list []status) {
	for _, state := range inventory.States() {
		for _, hold := range []holding{nobody, held, bound} {
			list = append(list, status{state, hold})
		}
	}
	return list
}()

// ownSymbols lists every verdict on rack and id.
var ownSymbols = func() []Verdict {
	rack := mask(func(r *Rule) bool { return r.Code == CodeRack })
	id := mask(func(r *Rule) bool { return r.Code == CodeServerExcluded })
	return []Verdict{{}, {Fails: rack}, {Unknown: rack}, {Fails: id}, {Fails: rack | id}, {Fails: id, Unknown: rack}}
}()

// freeze packs what this pass saw. Of a large inventory it keeps every step-th server, so that the sample covers it
// from end to end; the walked candidates are in the decision itself in any case.
func (p *pass) freeze() FrozenPack {
	step := max(1, (len(p.servers)+MaxFrozen-1)/MaxFrozen)
	pack := FrozenPack{Sampled: step > 1}
	kinds := p.rosterOf(step, &pack.Roster)
	reasons := reasonsPack{V: packVersion, Kinds: make([][]Reason, len(kinds))}
	for i, k := range kinds {
		reasons.Kinds[i] = p.kinds[k].Reasons()
	}
	for _, v := range ownSymbols {
		reasons.Own = append(reasons.Own, v.Reasons())
	}
	for _, s := range statusSymbols {
		reasons.Statuses = append(reasons.Statuses, s.verdict().Reasons())
	}
	pack.Reasons = newBlob(reasons)
	for i := 0; i < len(p.servers); i += step {
		pack.Statuses = appendRun(pack.Statuses, p.symbol(&p.servers[i]))
	}
	return pack
}

// rosterOf fills the roster and returns the kinds in it, by their number there.
func (p *pass) rosterOf(step int, into *Blob) []int32 {
	p.packs.Lock()
	defer p.packs.Unlock()
	if p.packs.of != p.roster || p.packs.blob.Body == nil {
		roster := rosterPack{V: packVersion}
		number := map[int32]int{}
		p.packs.kinds = nil
		for i := 0; i < len(p.servers); i += step {
			e := &p.servers[i]
			if _, known := number[e.kind]; !known {
				number[e.kind] = len(p.packs.kinds)
				p.packs.kinds = append(p.packs.kinds, e.kind)
			}
			roster.Servers = append(roster.Servers, rosterServer{e.id, e.name, p.index.kinds[e.kind].facts.Server.Site, number[e.kind]})
		}
		p.packs.blob, p.packs.of = newBlob(roster), p.roster
	}
	*into = p.packs.blob
	return p.packs.kinds
}

func (p *pass) symbol(e *entry) int {
	own := max(0, slices.Index(ownSymbols, p.ownVerdict(e)))
	return own*len(statusSymbols) + max(0, slices.Index(statusSymbols, e.status))
}

func appendRun(runs []int, symbol int) []int {
	if n := len(runs); n > 0 && runs[n-2] == symbol {
		runs[n-1]++
		return runs
	}
	return append(runs, symbol, 1)
}

// FrozenList is what a decision saw of every server, or of a sample.
type FrozenList struct {
	Candidates []FrozenCandidate
	Sampled    bool
}

// FrozenCandidate is one server as it was judged, with the reasons of that day.
type FrozenCandidate struct {
	Server  inventory.ServerID
	Name    string
	Site    string
	Reasons []Reason // empty for an eligible one
}

var errUnreadablePack = errors.New("a frozen list is of a shape that this version cannot read: run a newer one")

// Unpack reads what freeze packed. It needs nothing but the pack, so it reads the same whatever the rules are today.
func (p FrozenPack) Unpack() (FrozenList, error) {
	var roster rosterPack
	var reasons reasonsPack
	if err := errors.Join(json.Unmarshal(p.Roster.Body, &roster), json.Unmarshal(p.Reasons.Body, &reasons)); err != nil {
		return FrozenList{}, err
	}
	if roster.V != packVersion || reasons.V != packVersion || len(p.Statuses)%2 != 0 {
		return FrozenList{}, errUnreadablePack
	}
	list := FrozenList{Sampled: p.Sampled, Candidates: make([]FrozenCandidate, 0, len(roster.Servers))}
	for run := 0; run < len(p.Statuses); run += 2 {
		for range p.Statuses[run+1] {
			i := len(list.Candidates)
			if i >= len(roster.Servers) {
				return FrozenList{}, errUnreadablePack
			}
			c, err := reasons.candidate(roster.Servers[i], p.Statuses[run])
			if err != nil {
				return FrozenList{}, err
			}
			list.Candidates = append(list.Candidates, c)
		}
	}
	return list, nil
}

func (r *reasonsPack) candidate(s rosterServer, symbol int) (FrozenCandidate, error) {
	n := len(r.Statuses)
	if s.Kind < 0 || s.Kind >= len(r.Kinds) || n == 0 || symbol < 0 || symbol/n >= len(r.Own) {
		return FrozenCandidate{}, errUnreadablePack
	}
	reasons := slices.Concat(r.Kinds[s.Kind], r.Own[symbol/n], r.Statuses[symbol%n])
	if reasons == nil {
		reasons = []Reason{}
	}
	return FrozenCandidate{Server: s.ID, Name: s.Name, Site: s.Site, Reasons: reasons}, nil
}
