package httpapi_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var idPattern = regexp.MustCompile(`(res|srv|bnd|dec|key)_[0-9a-f]{32}`)

// Every route with ids of another organization answers, byte for byte, as with ids of nobody.
//
// Cases: AU-01. Faults: F-A1.
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
		require.Equal(t, headerOf(b), headerOf(a), r.id)
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

// headerOf is the header but for what is new in each answer.
func headerOf(a *answer) http.Header {
	header := a.header.Clone()
	header.Del("Date")
	header.Del("Content-Length") // a time in the body may be a digit shorter
	return header
}
