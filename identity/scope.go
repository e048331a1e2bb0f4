package identity

import (
	"slices"
	"strings"
)

// Scope is one kind of act that a key allows.
type Scope string

// The scopes, as the HTTP contract names them.
const (
	ScopeCheckout Scope = "checkout" // reserve, renew, cancel, evaluate in counts
	ScopeOrders   Scope = "orders"   // all of checkout, and convert and end a binding
	ScopeSupport  Scope = "support"  // read decisions and orders of the organization in full
	ScopeOperator Scope = "operator" // inventory, racks, imports, leases
	ScopeAdmin    Scope = "admin"    // keys, switches, webhooks of the organization
	ScopePlatform Scope = "platform" // organizations and global switches: acts across organizations
)

var scopeOrder = []Scope{ScopeCheckout, ScopeOrders, ScopeSupport, ScopeOperator, ScopeAdmin, ScopePlatform}

// Scopes lists every scope, in the order in which they are shown.
func Scopes() []Scope { return slices.Clone(scopeOrder) }

// Valid tells whether s is one of the six scopes.
func (s Scope) Valid() bool { return slices.Contains(scopeOrder, s) }

// ScopeSet is a set of scopes. The zero value is empty and allows nothing.
type ScopeSet uint8

// NewScopeSet makes a set; scopes that do not exist are left out, so that a mistyped one allows nothing.
func NewScopeSet(scopes ...Scope) ScopeSet {
	var set ScopeSet
	for _, s := range scopes {
		set |= s.bit()
	}
	return set
}

// AllScopes is the set that allows everything. It is for the command line on the database itself, whose user could
// write any row anyway.
func AllScopes() ScopeSet { return NewScopeSet(scopeOrder...) }

func (s Scope) bit() ScopeSet {
	i := slices.Index(scopeOrder, s)
	if i < 0 {
		return 0
	}
	return 1 << i
}

// Has tells whether the set allows what the scope allows. A key with orders may do everything of checkout, since order
// completion renews and cancels as well; no other scope includes another.
func (set ScopeSet) Has(s Scope) bool {
	if set&s.bit() != 0 {
		return true
	}
	return s == ScopeCheckout && set&ScopeOrders.bit() != 0
}

// Missing lists the scopes of other that this set does not allow, in the order of Scopes.
func (set ScopeSet) Missing(other ScopeSet) []Scope {
	var missing []Scope
	for _, s := range other.List() {
		if !set.Has(s) {
			missing = append(missing, s)
		}
	}
	return missing
}

// List gives the scopes that were put into the set, in the order of Scopes; included ones are not added.
func (set ScopeSet) List() []Scope {
	list := []Scope{}
	for _, s := range scopeOrder {
		if set&s.bit() != 0 {
			list = append(list, s)
		}
	}
	return list
}

// Names is List as plain texts, which is how a store keeps a set.
func (set ScopeSet) Names() []string {
	names := []string{}
	for _, s := range set.List() {
		names = append(names, string(s))
	}
	return names
}

// String writes the set as people read it: "checkout, support".
func (set ScopeSet) String() string { return strings.Join(set.Names(), ", ") }
