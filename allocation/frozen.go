package allocation

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"

	"allocator/inventory"
)

// FrozenPack is what a decision keeps of the list that it saw, packed so that little is written for each decision: which
// servers there were and of what kinds, what spoke against each kind, and in which status each server was. Blobs are the
// same for many decisions and stored once by their hash; of the statuses that is those of a moment before, with what
// changed since.
type FrozenPack struct {
	Roster   Blob
	Reasons  Blob
	Base     Blob  // the statuses that Statuses changes, as runs; no hash: Statuses has them all
	Statuses []int // on a base: place, symbol, place, symbol …; else runs: symbol, length, symbol, length …
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

// basePack is in which status each server of a roster was at one moment.
type basePack struct {
	V    int   `json:"v"`
	Runs []int `json:"runs"` // symbol, length, symbol, length …
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
	symbols, err := p.symbols(len(roster.Servers))
	if err != nil || roster.V != packVersion || reasons.V != packVersion {
		return FrozenList{}, errUnreadablePack
	}
	list := FrozenList{Sampled: p.Sampled, Candidates: make([]FrozenCandidate, len(symbols))}
	for i, symbol := range symbols {
		if list.Candidates[i], err = reasons.candidate(roster.Servers[i], symbol); err != nil {
			return FrozenList{}, err
		}
	}
	return list, nil
}

// symbols returns the symbol of each of n servers.
func (p FrozenPack) symbols(n int) ([]int, error) {
	if p.Base.Hash == nil {
		return expand(p.Statuses, n)
	}
	var base basePack
	if err := json.Unmarshal(p.Base.Body, &base); err != nil || base.V != packVersion || len(p.Statuses)%2 != 0 {
		return nil, errUnreadablePack
	}
	symbols, err := expand(base.Runs, n)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(p.Statuses); i += 2 {
		place := p.Statuses[i]
		if place < 0 || place >= n {
			return nil, errUnreadablePack
		}
		symbols[place] = p.Statuses[i+1]
	}
	return symbols, nil
}

// expand writes runs out; they have to be as long as n together.
func expand(runs []int, n int) ([]int, error) {
	if len(runs)%2 != 0 {
		return nil, errUnreadablePack
	}
	symbols := make([]int, 0, n)
	for run := 0; run < len(runs); run += 2 {
		length := runs[run+1]
		if length < 0 || length > n-len(symbols) {
			return nil, errUnreadablePack
		}
		for range length {
			symbols = append(symbols, runs[run])
		}
	}
	if len(symbols) != n {
		return nil, errUnreadablePack
	}
	return symbols, nil
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
