package allocation

import (
	"math/bits"

	"allocator/inventory"
)

// Code names one reason, for ever: it stands in answers, metrics and frozen decisions.
type Code string

// Facts is one server as the first pass sees it: the record and what holds it at that instant. A dead hold is no hold.
type Facts struct {
	Server    inventory.Server
	Held      bool
	HeldUntil int64 // Unix microseconds; 0 if not held
	Bound     bool
}

// Finding is what one rule says about one server.
type Finding int

// The three findings of a rule. An unknown attribute is a rejection of its own kind.
const (
	Holds Finding = iota
	Fails
	Unknown
)

// Rule is one row of the table of reasons: one way in which a server can be left out.
//
// Go and SQL say the same twice. Check judges Facts; Unknown and Holds are SQL expressions over s (a row of servers),
// o (held and bound as booleans) and q (the request's parameters as a record). A generated test holds them equal.
type Rule struct {
	Code     Code
	Sentence string // what is the matter, for people
	Remedy   string // what can be done about it

	Requirement string // JSON path of what the order asked for; empty for states, held and bound
	Param       string // name of the parameter in q; empty if the rule is always judged
	ParamType   string // its PostgreSQL type
	Arg         func(r *Requirements) any

	Own bool // judges what is a server's own, its rack or its id; servers of a kind may differ in it

	UnknownSQL string // true when the attribute is unknown; empty if it never is
	HoldsSQL   string // true when the server passes, given that it is not unknown
	Check      func(r *Requirements, f *Facts) Finding
}

// asked tells whether the order asks for what this rule judges.
func (rule *Rule) asked(r *Requirements) bool { return rule.Arg == nil || rule.Arg(r) != nil }

// RuleSet is a set of rows of the table of rules, a bit for each.
type RuleSet uint64

// Has tells whether row i of Rules is in the set.
func (s RuleSet) Has(i int) bool { return s>>i&1 == 1 }

// Asked returns the rules that these requirements ask; those on states and holds always are.
func (r *Requirements) Asked() RuleSet {
	return RuleSet(mask(func(rule *Rule) bool { return rule.asked(r) }))
}

// Judge applies every rule to one server and returns every reason against it, never only the first.
func Judge(r *Requirements, f *Facts) Verdict { return judge(allRules, r, f) }

// judge applies the rules of a mask.
func judge(of uint64, r *Requirements, f *Facts) Verdict {
	var v Verdict
	for ; of != 0; of &= of - 1 {
		i := bits.TrailingZeros64(of)
		if !rules[i].asked(r) {
			continue
		}
		switch rules[i].Check(r, f) {
		case Fails:
			v.Fails |= 1 << i
		case Unknown:
			v.Unknown |= 1 << i
		case Holds:
		}
	}
	return v
}

// Rules returns a copy of the table of reasons, for documents, metrics and the store's statements.
func Rules() []Rule { return append([]Rule(nil), rules...) }
