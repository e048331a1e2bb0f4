package identity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScopeSet(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		have    ScopeSet
		allowed []Scope
	}{
		"the empty set allows nothing":               {0, nil},
		"checkout allows itself alone":               {NewScopeSet(ScopeCheckout), []Scope{ScopeCheckout}},
		"orders includes the acts of checkout":       {NewScopeSet(ScopeOrders), []Scope{ScopeCheckout, ScopeOrders}},
		"platform includes no other scope":           {NewScopeSet(ScopePlatform), []Scope{ScopePlatform}},
		"admin includes no other scope":              {NewScopeSet(ScopeAdmin), []Scope{ScopeAdmin}},
		"several scopes add up":                      {NewScopeSet(ScopeSupport, ScopeOperator), []Scope{ScopeSupport, ScopeOperator}},
		"a scope that does not exist allows nothing": {NewScopeSet("root", "Checkout", ""), nil},
		"all scopes allow everything":                {AllScopes(), Scopes()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var allowed []Scope
			for _, s := range append(Scopes(), "root", "") {
				if test.have.Has(s) {
					allowed = append(allowed, s)
				}
			}
			require.Equal(t, test.allowed, allowed)
		})
	}
}

func TestScopeSetMissing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		have, wanted ScopeSet
		missing      []Scope
	}{
		"as many as one's own":                       {NewScopeSet(ScopeAdmin, ScopeSupport), NewScopeSet(ScopeAdmin, ScopeSupport), nil},
		"fewer than one's own":                       {AllScopes(), NewScopeSet(ScopeSupport), nil},
		"checkout from a key with orders":            {NewScopeSet(ScopeOrders), NewScopeSet(ScopeCheckout), nil},
		"orders from a key with checkout":            {NewScopeSet(ScopeCheckout), NewScopeSet(ScopeOrders), []Scope{ScopeOrders}},
		"platform and support from a key with admin": {NewScopeSet(ScopeAdmin), NewScopeSet(ScopePlatform, ScopeAdmin, ScopeSupport), []Scope{ScopeSupport, ScopePlatform}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.missing, test.have.Missing(test.wanted))
		})
	}
}

func TestScopeSetNamesReadBack(t *testing.T) {
	t.Parallel()
	for set := ScopeSet(0); set <= AllScopes(); set++ {
		require.Equal(t, set, NewScopeSet(set.List()...), "set %q", set)
		require.Len(t, set.Names(), len(set.List()))
	}
	require.Equal(t, "checkout, admin", NewScopeSet(ScopeAdmin, ScopeCheckout).String())
}
