package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// lock takes a lock on a key that nobody has.
func (w *world) lock(who string) *answer {
	w.t.Helper()
	return w.post(who, "/v1/locks", fmt.Sprintf(`{"key":"machine:%d/rack 7:bmc","ttl_ms":60000}`, w.next())).is(201, "")
}

func (w *world) renewLock(who, key, token string) *answer {
	w.t.Helper()
	return w.post(who, "/v1/locks/renew", fmt.Sprintf(`{"key":%q,"token":%q,"ttl_ms":90000}`, key, token))
}

func (w *world) releaseLock(who, key, token string) *answer {
	w.t.Helper()
	return w.do(call{who: who, method: "DELETE", path: "/v1/locks?key=" + url.QueryEscape(key), header: headersOf("Lock-Token", token)})
}

// A lock from start to end: taken, in everybody's way, renewed, given back. Being in the way says when to try again, and
// looks nothing like a broken backend. Another organization uses the same key without noticing.
//
// Requirements: L01, L02, L03, L07, L37, L38.
func TestLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const key = "machine:42:bmc/slot 1?&%2F+ö"
	take := func(who string) *answer {
		return w.post(who, "/v1/locks", fmt.Sprintf(`{"key":%q,"ttl_ms":60500}`, key))
	}
	first := take("acme:operator").is(201, "")
	require.Equal(t, []string{key, "60"}, []string{first.text("key"), first.text("seconds_left")})
	require.Contains(t, first.text("text"), "1m0.5s")
	expires, err := time.Parse(time.RFC3339, first.text("expires_at"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Minute), expires, 30*time.Second)

	held := take("acme:operator").is(409, "lock_held")
	require.Contains(t, []string{"1", "2", "3"}, held.header.Get("Retry-After"))
	require.Equal(t, []string{"true", "retry"}, []string{held.text("retryable"), held.text("action")})
	require.Contains(t, held.text("detail"), "Somebody else has the lock for another ")
	require.NotContains(t, string(held.body), first.text("token"))
	require.NotEmpty(t, held.text("seconds_left"))
	take("rival:operator").is(201, "")

	renewed := w.renewLock("acme:operator", key, first.text("token")).is(200, "")
	require.Equal(t, []string{first.text("token"), first.text("fence"), "90"}, []string{renewed.text("token"), renewed.text("fence"), renewed.text("seconds_left")})
	w.releaseLock("acme:operator", key, first.text("token")).is(204, "")
	second := take("acme:operator").is(201, "")
	require.NotEqual(t, first.text("token"), second.text("token"))
	require.Greater(t, second.at("fence"), first.at("fence"))
}

// A lock that is not the caller's is neither renewed nor released, whatever the reason, and is told in one way.
//
// Requirements: L05, L08, L09, L37.
// Cases: LE-01.
func TestLockLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lock := w.lock("acme:operator")
	key, token := lock.text("key"), lock.text("token")
	for name, c := range map[string]struct{ who, key, token string }{
		"another token":        {"acme:operator", key, token + "x"},
		"another key":          {"acme:operator", "nobody's", token},
		"another organization": {"rival:operator", key, token},
	} {
		renewal := w.renewLock(c.who, c.key, c.token).is(409, "lock_lost")
		release := w.releaseLock(c.who, c.key, c.token).is(409, "lock_lost")
		require.Equal(t, renewal.text("detail"), release.text("detail"), name)
		require.Equal(t, "false", renewal.text("retryable"), name)
	}
	w.exec(`UPDATE locks SET expires_at = clock_timestamp() WHERE key = $1`, key)
	w.renewLock("acme:operator", key, token).is(409, "lock_lost")
	w.releaseLock("acme:operator", key, token).is(409, "lock_lost")
}

// Bad input is refused with the name of the field, and changes nothing.
//
// Requirements: L37.
func TestLockInputIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lock := w.lock("acme:operator")
	long := strings.Repeat("ö", 128) // 256 bytes, 128 characters
	for name, c := range map[string]struct{ key, ttl, pointer string }{
		"no key":                {`""`, "1", "/key"},
		"a key that is none":    {"7", "1", "/key"},
		"a long key":            {`"` + long + `"`, "1", "/key"},
		"a longer key":          {`"` + long + long + `"`, "1", "/key"},
		"a line break":          {`"a\nb"`, "1", "/key"},
		"a NUL":                 {`"a\u0000b"`, "1", "/key"},
		"a line separator":      {`"a\u2028b"`, "1", "/key"},
		"half a character":      {`"\ud800"`, "1", "/key"},
		"no time":               {`"k"`, "0", "/ttl_ms"},
		"a negative time":       {`"k"`, "-1", "/ttl_ms"},
		"half a millisecond":    {`"k"`, "1.5", "/ttl_ms"},
		"an exponent":           {`"k"`, "1e3", "/ttl_ms"},
		"more than a week":      {`"k"`, "604800001", "/ttl_ms"},
		"nanoseconds overflow":  {`"k"`, "9223372036855", "/ttl_ms"},
		"an integer overflows":  {`"k"`, "9223372036854775808", "/ttl_ms"},
		"a time as text":        {`"k"`, `"1000"`, "/ttl_ms"},
		"a time that is absent": {`"k"`, "null", "/ttl_ms"},
	} {
		for path, more := range map[string]string{"/v1/locks": "", "/v1/locks/renew": `,"token":"t"`} {
			a := w.post("acme:operator", path, `{"key":`+c.key+`,"ttl_ms":`+c.ttl+more+`}`).is(400, "")
			if name != "half a character" { // the whole body is no JSON then
				require.Equal(t, c.pointer, a.text("errors.0.pointer"), "%s: %s", name, a.body)
			}
		}
	}
	for pointer, body := range map[string]string{"/ttl_ms": `{"key":"k"}`, "/key": `{"ttl_ms":1}`, "/ttl": `{"key":"k","ttl_ms":1,"ttl":1}`} {
		require.Equal(t, pointer, w.post("acme:operator", "/v1/locks", body).is(400, "invalid_request").text("errors.0.pointer"))
	}
	require.Equal(t, "/token", w.post("acme:operator", "/v1/locks/renew", `{"key":"k","ttl_ms":1}`).is(400, "invalid_request").text("errors.0.pointer"))
	for path, pointer := range map[string]string{
		"/v1/locks": "query:key", "/v1/locks?key=": "query:key", "/v1/locks?key=a%0Ab": "query:key",
		"/v1/locks?key=" + url.QueryEscape(long): "query:key", "/v1/locks?key=k&key=k": "query:key", "/v1/locks?key=%ff": "query:key",
	} {
		a := w.do(call{who: "acme:operator", method: "DELETE", path: path, header: headersOf("Lock-Token", "t")}).is(400, "invalid_request")
		require.Equal(t, pointer, a.text("errors.0.pointer"), "%s: %s", path, a.body)
	}
	a := w.do(call{who: "acme:operator", method: "DELETE", path: "/v1/locks?key=k"}).is(400, "invalid_request")
	require.Equal(t, "header:Lock-Token", a.text("errors.0.pointer"))

	var rows int
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT count(*) FROM locks`).Scan(&rows))
	require.Equal(t, 1, rows)
	w.renewLock("acme:operator", lock.text("key"), lock.text("token")).is(200, "")
	w.post("acme:operator", "/v1/locks", `{"key":"`+long[:254]+`x","ttl_ms":1}`).is(201, "")
}

// A database that is away is 503 with words of its own, never "somebody has it" and never "not yours".
//
// Requirements: L02, L04, L37.
func TestLocksWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	pool, way := postgrestest.NewOnCable(t)
	w := newWorldOn(t, pool, postgres.NewHealth(pool))
	lock := w.lock("acme:operator")
	way.Cut()
	for _, a := range []*answer{
		w.post("acme:operator", "/v1/locks", `{"key":"k","ttl_ms":1000}`),
		w.renewLock("acme:operator", lock.text("key"), lock.text("token")),
		w.releaseLock("acme:operator", lock.text("key"), lock.text("token")),
	} {
		a.is(503, "locks_unavailable")
		require.Contains(t, []string{"1", "2", "3"}, a.header.Get("Retry-After"))
	}
	w.post("acme:operator", "/v1/locks", `{"key":"k","ttl_ms":0}`).is(400, "invalid_request")
}

// A change of a server's state under a lock is done by the newest holder alone.
//
// Requirements: L37.
// Cases: LE-01.
func TestServerStateUnderALock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.addServer(1024)
	under := func(lock *answer, state string) *answer {
		return w.post("acme:operator", "/v1/servers/"+server+"/state",
			fmt.Sprintf(`{"state":%q,"reason":"fan","lock":{"key":%q,"fence":%s}}`, state, lock.text("key"), lock.text("fence")))
	}
	old := w.lock("acme:operator")
	under(old, "maintenance").is(200, "")
	w.releaseLock("acme:operator", old.text("key"), old.text("token")).is(204, "")
	newer := w.post("acme:operator", "/v1/locks", fmt.Sprintf(`{"key":%q,"ttl_ms":60000}`, old.text("key"))).is(201, "")
	a := under(old, "ready").is(409, "stale_fence")
	require.Equal(t, "false", a.text("retryable"))
	require.Equal(t, "maintenance", w.get("acme:operator", "/v1/servers/"+server).text("state"))
	under(newer, "ready").is(200, "")

	for pointer, lock := range map[string]string{
		"/lock/fence": `{"key":"k","fence":0}`, "/lock/key": `{"key":"","fence":1}`, "/lock": `7`,
	} {
		a := w.post("acme:operator", "/v1/servers/"+server+"/state", `{"state":"ready","reason":"fan","lock":`+lock+`}`).is(400, "invalid_request")
		require.Equal(t, pointer, a.text("errors.0.pointer"))
	}
	for pointer, lock := range map[string]string{"/lock/fence": `{"key":"k"}`, "/lock/key": `{"fence":1}`} {
		a := w.post("acme:operator", "/v1/servers/"+server+"/state", `{"state":"ready","reason":"fan","lock":`+lock+`}`).is(400, "invalid_request")
		require.Equal(t, pointer, a.text("errors.0.pointer"))
	}
	w.post("acme:operator", "/v1/servers/"+server+"/state", `{"state":"ready","reason":"fan","lock":null}`).is(200, "")
}

// Holders that lost a lock and the one that has it all write at once: what stands was written in the order in which they
// had it, and nobody wrote after a later one.
//
// Requirements: L37.
// Cases: LE-01.
func TestStaleHoldersRaceForTheState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.addServer(1024)
	var all sync.WaitGroup
	for range 10 {
		lock := w.post("acme:operator", "/v1/locks", `{"key":"k","ttl_ms":60000}`).is(201, "")
		for _, state := range []string{"maintenance", "ready"} {
			all.Go(func() {
				a := w.post("acme:operator", "/v1/servers/"+server+"/state",
					fmt.Sprintf(`{"state":%q,"reason":%q,"lock":{"key":"k","fence":%s}}`, state, lock.text("fence"), lock.text("fence")))
				if code := a.text("code"); code != "" && code != "stale_fence" {
					t.Error(code)
				}
			})
		}
		w.releaseLock("acme:operator", "k", lock.text("token")).is(204, "")
	}
	all.Wait()
	var wrote []int64
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT coalesce(array_agg((data ->> 'reason')::bigint ORDER BY at), '{}') FROM events
		WHERE type = 'server.state_changed'`).Scan(&wrote))
	require.True(t, slices.IsSorted(wrote), "%v", wrote)
}
