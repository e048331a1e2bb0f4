package redisport_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
)

// reserve holds a server for acme and returns the reservation with its hold token.
func (w *world) reserve() (*reservation.Reservation, string) {
	w.t.Helper()
	w.exec(`INSERT INTO servers (organization_id, id, source, external_id, site, state)
		VALUES ('acme', gen_random_uuid(), 'test', gen_random_uuid()::text, 'fsn1', 'ready')`)
	n := read[int](w, `SELECT count(*) FROM reservations`)
	outcome, err := w.allocator.Reserve(w.t.Context(), system("acme"), allocation.Request{
		IdempotencyKey: fmt.Sprint("key-", n), Order: reservation.OrderLine{OrderID: fmt.Sprint("A-", n), Line: "1", Unit: 1},
	})
	require.NoError(w.t, err)
	require.NotNil(w.t, outcome.Reservation)
	return outcome.Reservation, w.reservations.HoldToken(outcome.Reservation)
}

// The state, the countdown of the payment screen by the database's clock, and the end of the own hold.
func TestHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withClock(t))
	c := w.client("acme:checkout")
	r, token := w.reserve()
	key := "hold:" + string(r.ID)
	c.want("$4\r\nheld\r\n", "GET", key)
	left := r.ExpiresAt.Sub(read[time.Time](w, `SELECT now FROM test_clock`)).Milliseconds()
	c.want(fmt.Sprintf(":%d\r\n", left), "PTTL", key)
	w.advance(time.Minute)
	c.want(fmt.Sprintf(":%d\r\n", left-60_000), "PTTL", key)
	c.want(":1\r\n", "EXISTS", key)
	c.want("+string\r\n", "TYPE", key)

	for _, wrong := range []string{"", "hold_test_wrong", token[:len(token)-1], string(r.ID)} {
		c.want(":0\r\n", "DELEX", key, "IFEQ", wrong)
	}
	require.Contains(t, c.do("DELEX", key, "IFNE", "x"), "-ERR a hold is cancelled by its token alone")
	c.want("$4\r\nheld\r\n", "GET", key)
	c.want(":1\r\n", "DELEX", key, "IFEQ", token)
	c.want("$9\r\ncancelled\r\n", "GET", key)
	c.want(":-1\r\n", "PTTL", key)
	c.want(":1\r\n", "DELIFEQ", key, token)
	require.Equal(t, "cancelled", read[string](w, `SELECT state FROM reservations`))
	require.Equal(t, 1, read[int](w, `SELECT count(*) FROM audit WHERE action = 'reservation.cancelled' AND request_id <> ''`))
}

// A hold whose time is over is expired by the same clock, and cannot be cancelled; nor can one that was sold or taken
// over.
func TestHoldThatIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withClock(t))
	c := w.client("acme:orders")
	expired, expiredToken := w.reserve()
	w.advance(24 * time.Hour)
	c.want("$7\r\nexpired\r\n", "GET", "hold:"+string(expired.ID))
	c.want(":-1\r\n", "PTTL", "hold:"+string(expired.ID))
	c.want(":0\r\n", "DELEX", "hold:"+string(expired.ID), "IFEQ", expiredToken)

	sold, soldToken := w.reserve()
	_, err := w.reservations.Convert(t.Context(), system("acme"), sold.ID, "", "service-1")
	require.NoError(t, err)
	c.want("$9\r\nconverted\r\n", "GET", "hold:"+string(sold.ID))
	c.want(":0\r\n", "DELEX", "hold:"+string(sold.ID), "IFEQ", soldToken)

	taken, stale := w.reserve()
	_, err = w.reservations.TakeOver(t.Context(), system("acme"), taken.ID, "test")
	require.NoError(t, err)
	c.want(":0\r\n", "DELEX", "hold:"+string(taken.ID), "IFEQ", stale)
	c.want("$4\r\nheld\r\n", "GET", "hold:"+string(taken.ID))
}

// The frozen reason, and the digest that proves it unchanged.
func TestReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:support")
	r, _ := w.reserve()
	key := "reason:" + string(r.ID)
	text := regexp.MustCompile(`(?s)^\$\d+\r\n(.*)\r\n$`).FindStringSubmatch(c.do("GET", key))
	require.Len(t, text, 2)
	require.True(t, json.Valid([]byte(text[1])))
	require.JSONEq(t, string(r.Reason), text[1])
	digest := c.do("DIGEST", key)
	require.Regexp(t, `^\$16\r\n[0-9a-f]{16}\r\n$`, digest)
	c.want(":-1\r\n", "TTL", key)
	_, err := w.reservations.Cancel(t.Context(), system("acme"), r.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
	require.NoError(t, err)
	c.want(digest, "DIGEST", key)
	require.Contains(t, w.client("acme:checkout").do("GET", key), "-NOPERM ", "a reason names servers of others")
}

// Holds and reasons are only looked at and cancelled; nothing else changes them, whatever the key may do.
func TestHoldsAndReasonsAreReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:all")
	r, token := w.reserve()
	before := read[string](w, `SELECT reservations::text FROM reservations`)
	for _, prefix := range []string{"hold:", "reason:"} {
		key := prefix + string(r.ID)
		for _, command := range []string{
			"SET KEY x NX PX 1000", "SET KEY held IFEQ held PX 1000", "SET KEY x PX 1000", "PEXPIRE KEY 1000", "EXPIRE KEY 0", "PEXPIRE KEY -1", "DEL KEY", "DELEX KEY", "DELEX KEY IFNE x",
		} {
			reply := c.do(strings.Split(strings.ReplaceAll(command, "KEY", key), " ")...)
			require.Contains(t, reply, "-ERR ", command)
			require.NotContains(t, reply, token)
		}
	}
	require.Contains(t, c.do("DELEX", "reason:"+string(r.ID), "IFEQ", token), "-ERR ")
	require.Equal(t, before, read[string](w, `SELECT reservations::text FROM reservations`))
}

// Nothing is told across organizations, and what is unknown is as what is another's.
func TestHoldsOfOthersAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("rival:all")
	r, token := w.reserve()
	for _, id := range []string{string(r.ID), "res_00000000000000000000000000000000", "nonsense", ""} {
		for _, key := range []string{"hold:" + id, "reason:" + id} {
			c.want("$-1\r\n", "GET", key)
			c.want(":-2\r\n", "PTTL", key)
			c.want(":0\r\n", "EXISTS", key)
		}
		c.want(":0\r\n", "DELEX", "hold:"+id, "IFEQ", token)
	}
	require.Equal(t, "held", read[string](w, `SELECT state FROM reservations`))
}

// With the release switch off a hold can still be seen and given up, and nothing here makes a new one.
func TestSwitchOffStrandsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:all")
	r, token := w.reserve()
	w.turn("acme", false)
	c.want("$4\r\nheld\r\n", "GET", "hold:"+string(r.ID))
	require.Contains(t, c.do("SET", "hold:new", "x", "NX", "PX", "1000"), "-ERR ")
	c.want(":1\r\n", "DELEX", "hold:"+string(r.ID), "IFEQ", token)
	require.Equal(t, 1, read[int](w, `SELECT count(*) FROM reservations`))
}

// Every command asks for the scopes of its keys.
func TestScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, token := w.reserve()
	hold, reason := "hold:"+string(r.ID), "reason:"+string(r.ID)
	commands := map[string]map[identity.Scope]bool{
		"GET lock:a":                   {"checkout": true, "orders": true, "operator": true, "support": true, "admin": true},
		"EXISTS lock:a":                {"checkout": true, "orders": true, "operator": true, "support": true, "admin": true},
		"SET lock:a x PX 1000":         {"checkout": true, "orders": true, "operator": true},
		"PEXPIRE lock:a 1000":          {"checkout": true, "orders": true, "operator": true},
		"DELEX lock:a IFEQ x":          {"checkout": true, "orders": true, "operator": true},
		"DEL lock:a":                   {"admin": true},
		"GET " + hold:                  {"checkout": true, "orders": true, "support": true},
		"DIGEST " + reason:             {"support": true},
		"EXISTS lock:a " + reason:      {"support": true},
		"DELEX " + hold + " IFEQ x":    {"checkout": true, "orders": true, "support": true},
		"PING":                         {"checkout": true, "orders": true, "operator": true, "support": true, "admin": true, "platform": true},
		"DELEX lock:a IFNE " + token:   {"admin": true},
		"SET lock:a x IFNE y PX 1000":  {"checkout": true, "orders": true, "operator": true},
		"DELIFEQ lock:a " + "whatever": {"checkout": true, "orders": true, "operator": true},
	}
	for _, scope := range identity.Scopes() {
		c := w.client("acme:" + string(scope))
		for command, allowed := range commands {
			refused := strings.HasPrefix(c.do(strings.Split(command, " ")...), "-NOPERM ")
			require.Equal(t, allowed[scope], !refused, "%s with %s", command, scope)
		}
	}
}
