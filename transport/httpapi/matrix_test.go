package httpapi_test

import (
	"maps"
	"regexp"
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

// Requirements: R65. Fault: F-A3. Every route with every scope: who is not named by x-scopes is refused, and nobody else.
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
		"{organization_id}", "nobody", "{slug}", "contended",
	).Replace(path)
}

var idPattern = regexp.MustCompile(`(res|srv|bnd|dec|key)_[0-9a-f]{32}`)

// Faults: F-A1. Every route with ids of another organization answers, byte for byte, as with ids of nobody.
func TestOtherOrganizationsAreNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const rival = "rival:checkout,orders,support,operator,admin"
	unknown := func(text string) string {
		text = idPattern.ReplaceAllStringFunc(text, func(id string) string { return id[:len(id)-19] + "f000000000000000000" }) // of the same age
		text = strings.ReplaceAll(text, "/overrides/acme", "/overrides/nobody")
		return regexp.MustCompile(`(orders/|order_id=)A-\w+`).ReplaceAllString(text, "${1}nobody")
	}
	seen := 0
	for _, r := range w.spec.routes {
		if slices.Equal(r.scopes, []string{"platform"}) || slices.Equal(r.scopes, []string{"open"}) {
			continue // those act across organizations, or on none
		}
		theirs := recipes[r.id].make(w)
		nobodys := theirs
		nobodys.path, nobodys.body = unknown(theirs.path), unknown(theirs.body)
		if nobodys.path == theirs.path && nobodys.body == theirs.body {
			continue // names nothing of anybody
		}
		seen++
		a, b := w.asRival(rival, theirs), w.asRival(rival, nobodys)
		require.Equal(t, b.status, a.status, "%s: %s against %s", r.id, a.body, b.body)
		require.Equal(t, blank(b.body), blank(a.body), r.id)
		require.Equal(t, headerNames(b), headerNames(a), r.id)
		if strings.Contains(r.path, "{") || r.id == "createBinding" {
			a.is(404, "not_found")
		} else if a.status == 200 && r.id != "evaluate" {
			require.Empty(t, a.at("items"), r.id)
		}
	}
	require.Greater(t, seen, 20)
}

func (w *world) asRival(who string, c call) *answer {
	c.who = who
	header := headersOf("X-Request-ID", "the-same")
	maps.Copy(header, c.header)
	c.header = header
	return w.do(c)
}

// blank takes out what is new in each answer.
func blank(body []byte) string {
	text := regexp.MustCompile(`dec_[0-9a-f]{32}`).ReplaceAllString(string(body), "dec")
	return regexp.MustCompile(`"at":"[^"]*"`).ReplaceAllString(text, `"at":""`)
}

func headerNames(a *answer) []string {
	var names []string
	for name := range a.header {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Requirements: R65, R66. With the switch closed a request that would make a new reservation is refused, with nothing
// written but its decision; every other route behaves as with the switch open.
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
		sql := `SELECT count(*) FROM ` + table
		if table == "events" {
			sql += ` WHERE type <> 'order.refused'` // announces a decision and belongs to it
		}
		var n int
		require.NoError(w.t, w.pool.QueryRow(w.t.Context(), sql).Scan(&n))
		counts[table] = n
	}
	return counts
}
