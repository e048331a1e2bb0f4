package allocation

import "math/bits"

// Verdict is everything that speaks against one server, a bit for each row of the table of rules.
type Verdict struct {
	Fails   uint64
	Unknown uint64
}

// CodeUnknownAttribute stands in place of a requirement's own code when the attribute it judges is unknown.
const CodeUnknownAttribute Code = "unknown_attribute"

// Reason is one code against a server. Requirement is the JSON path of what was asked, empty for states and holds.
type Reason struct {
	Code        Code   `json:"code"`
	Requirement string `json:"requirement,omitempty"`
}

// Eligible tells whether nothing speaks against the server.
func (v Verdict) Eligible() bool { return v.all() == 0 }

func (v Verdict) all() uint64 { return v.Fails | v.Unknown }

// Reasons lists every reason, in the order of the table.
func (v Verdict) Reasons() []Reason {
	reasons := make([]Reason, 0, bits.OnesCount64(v.all()))
	for rest := v.all(); rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		reasons = append(reasons, reasonAt(i, v.Unknown&(1<<i) != 0))
	}
	return reasons
}

// reasonAt names row i of the table.
func reasonAt(i int, unknown bool) Reason {
	if unknown {
		return Reason{Code: CodeUnknownAttribute, Requirement: rules[i].Requirement}
	}
	return Reason{Code: rules[i].Code, Requirement: rules[i].Requirement}
}

// mask returns the bits of the rules for which want holds.
func mask(want func(*Rule) bool) uint64 {
	var m uint64
	for i := range rules {
		if want(&rules[i]) {
			m |= 1 << i
		}
	}
	return m
}

var (
	heldMask     = mask(func(r *Rule) bool { return r.Code == CodeHeld })
	boundMask    = mask(func(r *Rule) bool { return r.Code == CodeBound })
	occupiedMask = heldMask | boundMask

	allRules    = mask(func(*Rule) bool { return true })
	statusRules = mask(func(r *Rule) bool { return r.Arg == nil })           // state, held, bound
	ownRules    = mask(func(r *Rule) bool { return r.Own })                  // rack, id
	kindRules   = mask(func(r *Rule) bool { return r.Arg != nil && !r.Own }) // everything else
)

// and joins what two groups of rules say of the same server.
func (v Verdict) and(w Verdict) Verdict {
	return Verdict{Fails: v.Fails | w.Fails, Unknown: v.Unknown | w.Unknown}
}

// Matches tells whether the server would be eligible if nobody held it.
func (v Verdict) Matches() bool { return v.all()&^occupiedMask == 0 }
