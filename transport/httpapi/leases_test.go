package httpapi_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/lease"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// lease sends a request about a lease as somebody, who may say whom of those with the same key it is: "acme:operator anna".
func (w *world) lease(who, method, resource, more, body string) *answer {
	w.t.Helper()
	who, holder, _ := strings.Cut(who, " ")
	c := call{who: who, method: method, path: "/v1/leases/" + url.PathEscape(resource) + more, body: body}
	if holder != "" {
		c.header = headersOf("Lease-Holder", holder)
	}
	return w.do(c)
}

const minute = `{"seconds":60}`

// expire lets every lease run out.
func (w *world) expire() {
	w.t.Helper()
	w.exec(`UPDATE leases SET version = version + 1, expires_at = date_trunc('second', clock_timestamp()) - interval '1 second'`)
}

// A day at the door: taken, seen, in somebody's way, kept, given back.
//
// Requirements: E01, E06, E08, E11, E12, E13, E21, E31.
func TestLeasesOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const anna, bob, carl = "acme:operator anna", "acme:operator bob", "acme:operator,support"
	mine := w.lease(anna, "PUT", "rack:A12", "?part=u17", `{"seconds":60,"name":"Anna Müller"}`).is(200, "")
	require.Equal(t, []string{"rack:A12", "u17", "Anna Müller"}, []string{mine.text("resource"), mine.text("part"), mine.text("holder.name")})
	require.True(t, strings.HasPrefix(mine.text("holder.id"), "key_") && strings.HasSuffix(mine.text("holder.id"), "/anna"))

	held := w.lease(bob, "PUT", "rack:A12", "", minute).is(409, "lease_held")
	require.Equal(t, mine.text("holder.id"), held.text("lease.holder.id"))
	require.Equal(t, held.header.Get("Retry-After"), held.text("lease.seconds_left"))
	require.Contains(t, held.text("detail"), "Anna Müller")
	w.lease(bob, "PUT", "rack:A12", "?part=u18", minute).is(200, "")
	w.lease(carl, "PUT", "rack:A12", "?part=u17", minute).is(409, "lease_held")
	w.lease("rival:operator anna", "PUT", "rack:A12", "", minute).is(200, "")

	kept := w.lease(anna, "POST", "rack:A12", "/heartbeat?part=u17", `{"seconds":3600}`).is(200, "")
	require.Equal(t, "Anna Müller", kept.text("holder.name"), "a heartbeat need not say it again")
	present := w.lease(carl, "GET", "rack:A12", "", "").is(200, "")
	require.Equal(t, []string{"u17", "u18"}, []string{present.text("leases.0.part"), present.text("leases.1.part")})
	lost := w.lease(bob, "POST", "rack:A12", "/heartbeat?part=u17", minute).is(410, "lease_lost")
	require.Equal(t, "Anna Müller", lost.text("lease.holder.name"))
	require.Nil(t, w.lease(bob, "POST", "rack:A99", "/heartbeat", minute).is(410, "lease_lost").at("lease"))

	left := w.lease(anna, "POST", "rack:A12", "/leave", "").is(200, "")
	require.Len(t, left.at("leases"), 1)
	require.Equal(t, "false", w.lease(anna, "DELETE", "rack:A12", "?part=u17", "").is(200, "").text("released"))
	require.Equal(t, "true", w.lease(bob, "DELETE", "rack:A12", "?part=u18", "").is(200, "").text("released"))
	w.lease(bob, "PUT", "rack:A12", "", minute).is(200, "")
	w.expire()
	require.Empty(t, w.lease(bob, "GET", "rack:A12", "", "").is(200, "").at("leases"))
	require.Equal(t, "true", w.lease(bob, "DELETE", "rack:A12", "", "").is(200, "").text("lapsed"))
}

// What another process did is in the very next answer: what was asked for before is remembered nowhere.
//
// Requirements: E09, E12, E14, E15, E16, E20, E31.
func TestPresenceFollowsOtherProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := postgrestest.Pool(t, w.pool.Config().ConnString())
	other := lease.NewService(postgres.NewLeases(pool), postgres.NewLeasePolicy(pool))
	writer := func(holder string) lease.Writer {
		return lease.Writer{Organization: "acme", Holder: lease.Holder{ID: holder, Name: holder}, ActorKind: "system", ActorID: "other"}
	}
	ctx, key := t.Context(), lease.Key{Resource: "rack:A12", Part: "u17"}
	present := func() string {
		t.Helper()
		var seen strings.Builder
		for _, l := range w.lease("acme:operator", "GET", "rack:A12", "", "").is(200, "").at("leases").([]any) {
			one := l.(map[string]any)
			fmt.Fprintf(&seen, "%s %s for %s; ", one["part"], one["holder"].(map[string]any)["id"], one["seconds_left"])
		}
		return seen.String()
	}
	require.Empty(t, present())
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"acquired", func() error { _, err := other.Acquire(ctx, writer("anna"), key, 3600); return err }, `u17 anna for 3[56]..; `},
		{"kept", func() error { _, err := other.Heartbeat(ctx, writer("anna"), key, 7200); return err }, `u17 anna for 7[12]..; `},
		{"taken over", func() error {
			_, err := other.TakeOver(ctx, writer("bob"), lease.Key{Resource: "rack:A12"}, 3600, "why")
			return err
		}, ` bob for 3[56]..; `},
		{"released", func() error {
			_, err := other.Release(ctx, writer("bob"), lease.Key{Resource: "rack:A12"})
			return err
		}, ``},
		{"acquired again", func() error { _, err := other.Acquire(ctx, writer("bob"), key, 3600); return err }, `u17 bob for 3[56]..; `},
		{"left", func() error { _, err := other.Leave(ctx, writer("bob"), "rack:A12"); return err }, ``},
		{"acquired for good", func() error { _, err := other.Acquire(ctx, writer("cleo"), key, 3600); return err }, `u17 cleo for 3[56]..; `},
		{"by hand", func() error {
			w.exec(`UPDATE leases SET holder_id = 'dora', version = version + 1`)
			return nil
		}, `u17 dora for 3[56]..; `},
		{"run out", func() error { w.expire(); return nil }, ``},
		{"alive again", func() error { _, err := other.Heartbeat(ctx, writer("dora"), key, 3600); return err }, `u17 dora for 3[56]..; `},
		{"purged", func() error {
			_, err := pool.Exec(ctx, `UPDATE leases SET version = version + 1, expires_at = date_trunc('second', clock_timestamp()) - interval '2 days'`)
			_, failed := other.Purge(ctx)
			return errors.Join(err, failed)
		}, ``},
		{"by another", func() error { _, err := other.Acquire(ctx, writer("emma"), key, 3600); return err }, `u17 emma for 3[56]..; `},
	} {
		require.NoError(t, step.do(), step.name)
		require.Regexp(t, "^"+step.want+"$", present(), step.name)
	}
}

// Those who ask at once share an answer only if they have the same key: everybody's right is asked, and organizations that
// use the same names do not meet.
//
// Requirements: E19, E31.
func TestPresenceIsSharedWithinAKeyAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const revoked = "acme:operator,checkout"
	w.lease("acme:operator anna", "PUT", "rack:A12", "", minute).is(200, "")
	for _, who := range []string{"rival:operator", revoked} {
		w.lease(who, "GET", "rack:A12", "", "").is(200, "")
	}
	w.exec(`UPDATE api_keys SET revoked_at = now(), revoked_by_kind = 'person', revoked_by_id = 'x' WHERE name = $1`, revoked)
	beside := postgrestest.Pool(t, w.pool.Config().ConnString())
	tx, err := beside.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE leases IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	waiting := func() (n int) {
		require.NoError(t, beside.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'leases'::regclass`).Scan(&n))
		return n
	}
	answers := map[string]chan *answer{}
	ask := func(who string) {
		got := make(chan *answer, 1)
		answers[who] = got
		go func() { got <- w.lease(who, "GET", "rack:A12", "", "") }()
	}
	ask("acme:operator")
	require.Eventually(t, func() bool { return waiting() == 1 }, time.Minute, 5*time.Millisecond)
	for _, who := range []string{"acme:operator bob", "acme:operator cleo", "rival:operator", revoked} {
		ask(who)
	}
	require.Eventually(t, func() bool { return waiting() >= 3 }, time.Minute, 5*time.Millisecond, "each key asks by itself")
	require.NoError(t, tx.Rollback(t.Context()))
	for who, want := range map[string]int{"acme:operator": 1, "acme:operator bob": 1, "acme:operator cleo": 1, "rival:operator": 0} {
		require.Len(t, (<-answers[who]).is(200, "").at("leases"), want, who)
	}
	(<-answers[revoked]).is(403, "edit_refused")
}

// From holders with the same key everybody may take over, from others an admin; the audit trail keeps the reason.
//
// Requirements: E15, E19, E21.
func TestTakeOverOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const wanted = `{"seconds":60,"reason":"anna is at lunch"}`
	w.lease("acme:operator anna", "PUT", "rack:A12", "", minute).is(200, "")
	w.lease("acme:operator bob", "POST", "rack:A12", "/take-over", minute).is(400, "invalid_request")
	a := w.lease("acme:operator bob", "POST", "rack:A12", "/take-over", wanted).is(200, "")
	require.True(t, strings.HasSuffix(a.text("removed.0.holder.id"), "/anna"))
	w.lease("acme:operator anna", "POST", "rack:A12", "/heartbeat", minute).is(410, "lease_lost")

	w.lease("acme:operator,support", "POST", "rack:A12", "/take-over", wanted).is(403, "edit_refused")
	require.True(t, strings.HasSuffix(w.lease("acme:operator", "GET", "rack:A12", "", "").text("leases.0.holder.id"), "/bob"), "nothing was changed")
	w.lease("acme:operator,admin", "POST", "rack:A12", "/take-over", wanted).is(200, "")
	trail := w.get("acme:admin", "/v1/audit").is(200, "")
	require.Contains(t, string(trail.body), `"lease.taken_over"`)
	require.Contains(t, string(trail.body), "anna is at lunch")
	require.Contains(t, string(trail.body), `"edit_refused"`)
}

// A key that was revoked a moment ago, while the door still remembers it, edits nothing: the heartbeat frees its lease.
//
// Requirements: E19, E20.
func TestRevokedKeyEditsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const anna = "acme:operator,checkout"
	id := w.addServer(1024)
	w.edits(anna, "/v1/servers/"+id)
	w.exec(`UPDATE api_keys SET revoked_at = now(), revoked_by_kind = 'person', revoked_by_id = 'x' WHERE name = $1`, anna)
	w.do(call{who: anna, method: "PATCH", path: "/v1/servers/" + id, body: `{"tags":["x"]}`, header: headersOf("If-Match", "*")}).is(403, "edit_refused")
	w.post(anna, "/v1/servers/"+id+"/state", `{"state":"maintenance","reason":"fan"}`).is(403, "edit_refused")
	w.lease(anna, "GET", "server:"+id, "", "").is(403, "edit_refused")
	w.lease(anna, "PUT", "rack:A1", "", minute).is(403, "edit_refused")
	require.Len(t, w.lease("acme:operator", "GET", "server:"+id, "", "").at("leases"), 1)
	w.lease(anna, "POST", "server:"+id, "/heartbeat", minute).is(403, "edit_refused")
	require.Empty(t, w.lease("acme:operator", "GET", "server:"+id, "", "").at("leases"), "it is free")
}

// Whatever is wrong with a resource, a part, a holder or the seconds is told with its name, and nothing is changed.
//
// Requirements: E02, E03.
// Faults: F-H3, F-H4.
func TestLeaseRequestsAreReadStrictly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lease("acme:operator", "PUT", "kept", "", minute).is(200, "")
	before := w.leaseRows()
	for name, tt := range map[string]struct{ path, body, want string }{
		"256 bytes":              {strings.Repeat("x", 256), minute, "path:resource"},
		"258 bytes in 86 signs":  {strings.Repeat("%E2%82%AC", 86), minute, "path:resource"},
		"a NUL":                  {"a%00b", minute, "path:resource"},
		"a line break":           {"a%0Ab", minute, "path:resource"},
		"DEL":                    {"a%7F", minute, "path:resource"},
		"a separator of lines":   {"a%E2%80%A8b", minute, "path:resource"},
		"no UTF-8":               {"a%FF", minute, "path:resource"},
		"an empty part":          {"a?part=", minute, "query:part"},
		"a part of 65":           {"a?part=" + strings.Repeat("p", 65), minute, "query:part"},
		"a part with a point":    {"a?part=u.5", minute, "query:part"},
		"a part with a slash":    {"a?part=u%2F5", minute, "query:part"},
		"a part of other script": {"a?part=%C3%BC", minute, "query:part"},
		"two parts":              {"a?part=u1&part=u2", minute, "query:part"},
		"another parameter":      {"a?seconds=60", minute, "query:seconds"},
		"0 seconds":              {"a", `{"seconds":0}`, "/seconds"},
		"seconds below 0":        {"a", `{"seconds":-60}`, "/seconds"},
		"half a second":          {"a", `{"seconds":0.5}`, "/seconds"},
		"60 and a half":          {"a", `{"seconds":60.5}`, "/seconds"},
		"a day and a second":     {"a", `{"seconds":86401}`, "/seconds"},
		"2^63 seconds":           {"a", `{"seconds":9223372036854775808}`, "/seconds"},
		"1e400 seconds":          {"a", `{"seconds":1e400}`, "/seconds"},
		"seconds as text":        {"a", `{"seconds":"60"}`, "/seconds"},
		"seconds of null":        {"a", `{"seconds":null}`, "/seconds"},
		"no seconds":             {"a", `{}`, "/seconds"},
		"a name with a NUL":      {"a", `{"seconds":60,"name":"a\u0000"}`, "/name"},
		"a long name":            {"a", `{"seconds":60,"name":"` + strings.Repeat("é", 201) + `"}`, "/name"},
		"a holder in the body":   {"a", `{"seconds":60,"holder":"bob"}`, "/holder"},
	} {
		for _, more := range []string{"", "/heartbeat"} {
			path, query, _ := strings.Cut(tt.path, "?")
			c := call{who: "acme:operator", method: "PUT", path: "/v1/leases/" + path + more + "?" + query, body: tt.body}
			if more != "" {
				c.method = "POST"
			}
			a := w.do(c).is(400, "invalid_request")
			require.Equal(t, tt.want, a.text("errors.0.pointer"), "%s%s: %s", name, more, a.body)
		}
	}
	for _, holder := range []string{"a b", "ä", strings.Repeat("x", 101)} {
		a := w.do(call{who: "acme:operator", method: "PUT", path: "/v1/leases/a", body: minute, header: headersOf("Lease-Holder", holder)}).is(400, "invalid_request")
		require.Equal(t, "header:Lease-Holder", a.text("errors.0.pointer"))
	}
	w.do(call{who: "acme:operator", method: "PUT", path: "/v1/leases/", body: minute}).is(404, "not_found")
	require.Equal(t, before, w.leaseRows(), "nothing was changed")

	for name, path := range map[string]string{
		"255 bytes":        strings.Repeat("y", 255),
		"a slash":          url.PathEscape("a/b"),
		"a per cent":       url.PathEscape("100%"),
		"an escaped slash": url.PathEscape("a%2Fb"),
		"other scripts":    url.PathEscape("Regal Ä 7 機"),
		"a part of 64":     "z?part=" + strings.Repeat("p", 64),
	} {
		a := w.do(call{who: "acme:operator", method: "PUT", path: "/v1/leases/" + path, body: minute}).is(200, "")
		asked, err := url.PathUnescape(path)
		require.NoError(t, err)
		asked, _, _ = strings.Cut(asked, "?")
		require.Equal(t, asked, a.text("resource"), name)
	}
}

// leaseRows counts what is stored.
func (w *world) leaseRows() (n int) {
	w.t.Helper()
	require.NoError(w.t, w.pool.QueryRow(w.t.Context(), `SELECT count(*) + (SELECT count(*) FROM lease_resources) FROM leases`).Scan(&n))
	return n
}

// A change of a server's record needs a lease that covers it: on the record or the part that is changed, on its rack or its
// place there, on its chassis or its node there. It is looked at when it is written.
//
// Requirements: E05, E14, E19, E20.
func TestServerChangesNeedALease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := strings.Replace(fullServer, `"tier":"1"`, `"chassis":"7","node":"node-3"`, 1)
	body = strings.Replace(body, `"position":"12.5"`, `"position":"17"`, 1)
	path := w.post("acme:operator", "/v1/servers", body).is(201, "").header.Get("Location")
	server := "server:" + strings.TrimPrefix(path, "/v1/servers/")
	n := 0
	patch := func(holder, body string) *answer {
		t.Helper()
		return w.do(call{who: "acme:operator", method: "PATCH", path: path, body: body, header: headersOf("If-Match", "*", "Lease-Holder", holder)})
	}
	tag := func(holder string) *answer { n++; return patch(holder, `{"tags":["t`+strings.Repeat("x", n)+`"]}`) }
	state := func(holder, to string) *answer {
		t.Helper()
		return w.post("acme:operator", path+"/state", `{"state":"`+to+`","reason":"fan"}`, "Lease-Holder", holder)
	}
	tag("anna").is(410, "lease_lost")
	state("anna", "maintenance").is(410, "lease_lost")
	require.Equal(t, "ready", w.get("acme:operator", path).text("state"))

	for _, covering := range []string{server, server + "?part=tags", "rack:A12", "rack:A12?part=u17", "chassis:7", "chassis:7?part=node-3"} {
		resource, part, _ := strings.Cut(covering, "?")
		w.lease("acme:operator anna", "PUT", resource, "?"+part, minute).is(200, "")
		tag("anna").is(200, "")
		tag("bob").is(409, "lease_held")
		w.do(call{who: "acme:operator", method: "PATCH", path: path, body: `{"tags":["mine"]}`, header: headersOf("If-Match", "*")}).is(409, "lease_held")
		w.expire()
		tag("anna").is(410, "lease_lost")
		w.lease("acme:operator anna", "DELETE", resource, "?"+part, "").is(200, "")
	}
	for _, other := range []string{server + "?part=price", "rack:A12?part=u18", "chassis:7?part=node-4", "rack:A13", "chassis:8"} {
		resource, part, _ := strings.Cut(other, "?")
		w.lease("acme:operator anna", "PUT", resource, "?"+part, minute).is(200, "")
		tag("anna").is(410, "lease_lost")
	}
	w.lease("acme:operator anna", "PUT", server, "?part=memory", minute).is(200, "")
	patch("anna", `{"memory":{"mib":1024}}`).is(200, "")
	patch("anna", `{"memory":{"mib":2048},"raid":"none"}`).is(410, "lease_lost")
	require.Equal(t, "1024", w.get("acme:operator", path).text("memory.mib"), "nothing of it was written")
	state("anna", "maintenance").is(410, "lease_lost")
	w.lease("acme:operator anna", "PUT", server, "?part=state", minute).is(200, "")
	state("anna", "maintenance").is(200, "")
	state("bob", "ready").is(409, "lease_held")
	state("bob", "maintenance").is(200, "") // it is that already, so nothing is written
	held := tag("bob").is(410, "lease_lost")
	require.Contains(t, held.text("detail"), "take it")
}

// Nobody adds a server to a rack or a chassis that somebody else edits, or moves one there; the editor does.
//
// Requirements: E04, E14.
func TestNewServersStayOutOfLeasedPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	add := func(holder, name, more string) *answer {
		t.Helper()
		return w.post("acme:operator", "/v1/servers", `{"name":"`+name+`","site":"FSN1","state":"planned"`+more+`}`, "Lease-Holder", holder)
	}
	w.lease("acme:operator anna", "PUT", "rack:A12", "?part=u17", minute).is(200, "")
	w.lease("acme:operator anna", "PUT", "chassis:7", "", minute).is(200, "")
	held := add("bob", "a", `,"rack":"A12","position":"17"`).is(409, "lease_held")
	require.Equal(t, "u17", held.text("lease.part"))
	add("bob", "a", `,"rack":"A12"`).is(409, "lease_held") // anywhere in the rack
	add("bob", "a", `,"attributes":{"chassis":"7","node":"node-1"}`).is(409, "lease_held")
	add("bob", "a", `,"rack":"A12","position":"18"`).is(201, "")
	path := add("anna", "b", `,"rack":"A12","position":"17","attributes":{"chassis":"7"}`).is(201, "").header.Get("Location")
	add("bob", "c", `,"attributes":{"node":"node-1"}`).is(201, "")

	moved := add("bob", "d", `,"rack":"B1","position":"1"`).is(201, "").header.Get("Location")
	w.lease("acme:operator bob", "PUT", "server:"+strings.TrimPrefix(moved, "/v1/servers/"), "", minute).is(200, "")
	move := func(to string) *answer {
		return w.do(call{who: "acme:operator", method: "PATCH", path: moved, body: to, header: headersOf("If-Match", "*", "Lease-Holder", "bob")})
	}
	move(`{"rack":"A12","position":"17"}`).is(409, "lease_held")
	move(`{"rack":"A12","position":"16"}`).is(200, "")
	w.expire()
	w.lease("acme:operator bob", "PUT", "server:"+strings.TrimPrefix(moved, "/v1/servers/"), "", minute).is(200, "")
	move(`{"position":"17"}`).is(200, "")
	require.NotEmpty(t, path)
}
