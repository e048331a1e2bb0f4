package httpapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var allScopes = []string{"checkout", "orders", "support", "operator", "admin", "platform"}

// Every operation has a recipe, or the matrices below would pass over it.
func TestEveryOperationHasARecipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids []string
	for _, r := range w.spec.routes {
		ids = append(ids, r.id)
	}
	var cooked []string
	for id := range recipes {
		cooked = append(cooked, id)
	}
	require.ElementsMatch(t, ids, cooked)
}

// Every route with every scope: who is not named by x-scopes is refused, and nobody else.
//
// Requirements: R65. Cases: AU-05. Faults: F-A3.
func TestScopeMatrix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, r := range w.spec.routes {
		path := fakePath(r.path)
		if slices.Equal(r.scopes, []string{"open"}) {
			require.NotEqual(t, 401, w.do(call{method: r.method, path: path}).status, r.id)
			continue
		}
		for _, who := range []string{"", "acme:"} {
			c := call{method: r.method, path: path}
			if who != "" {
				c.header = headersOf("Authorization", "Bearer alk_nonsense")
			}
			a := w.do(c).is(401, "unauthenticated")
			require.Contains(t, a.header.Get("WWW-Authenticate"), `Bearer realm="allocator"`)
		}
		for _, scope := range allScopes {
			a := w.do(call{who: "acme:" + scope, method: r.method, path: path})
			allowed := slices.Contains(r.scopes, scope) || (scope == "orders" && slices.Contains(r.scopes, "checkout"))
			if allowed {
				require.NotContains(t, []int{401, 403}, a.status, "%s with %s: %s", r.id, scope, a.body)
				continue
			}
			a.is(403, "missing_scope")
			require.Contains(t, a.header.Get("WWW-Authenticate"), "insufficient_scope")
			require.Contains(t, a.text("detail"), r.scopes[0])
		}
	}
}

// fakePath fills a path with ids that nobody has.
func fakePath(path string) string {
	const digits = "01900000000070008000000000000000"
	return strings.NewReplacer(
		"{reservation_id}", "res_"+digits, "{binding_id}", "bnd_"+digits, "{decision_id}", "dec_"+digits,
		"{server_id}", "srv_"+digits, "{key_id}", "key_"+digits, "{order_id}", "nobody", "{flag_key}", "nothing",
		"{organization_id}", "nobody", "{job_id}", "nobody", "{slug}", "contended", "{resource}", "rack:nobody",
	).Replace(path)
}

// With the switch closed a request that would make a new reservation is refused, with nothing written but its decision;
// every other route behaves as with the switch open.
//
// Requirements: R65, R66.
func TestSwitchMatrix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, r := range w.spec.routes {
		how := recipes[r.id]
		w.turn("acme", true)
		open := how.make(w)
		open.who = "acme:all"
		w.do(open).is(how.want, "")

		w.turn("acme", true) // the call itself may have turned it
		closed := how.make(w)
		closed.who = "acme:all"
		w.turn("acme", false)
		before := w.written()
		a := w.do(closed)
		if how.whileOff == 0 {
			a.is(how.want, "")
			continue
		}
		a.is(how.whileOff, "feature_disabled")
		if r.id == "createReservation" {
			before["decisions"]++
			require.NotEmpty(t, a.text("decision_id"))
		}
		require.Equal(t, before, w.written(), r.id)
	}
}

// written counts the rows of everything that a reservation could leave.
func (w *world) written() map[string]int {
	counts := map[string]int{}
	for _, table := range []string{"reservations", "bindings", "occupancy", "events", "decisions", "audit", "servers"} {
		var n int
		require.NoError(w.t, w.pool.QueryRow(w.t.Context(), `SELECT count(*) FROM `+table).Scan(&n))
		counts[table] = n
	}
	return counts
}
