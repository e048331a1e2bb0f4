package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A key is read where reservations are made, and nowhere else; a repetition says that it is one.
//
// Requirements: R46. Cases: ID-01.
func TestKeysBelongToOneRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(4096)
	w.addServer(4096)
	first := w.post("acme:orders", "/v1/reservations", order("1"), "Idempotency-Key", "k").is(201, "")
	w.post("acme:orders", "/v1/reservations", order("2"), "Idempotency-Key", "k").is(422, "idempotency_mismatch")
	w.act("acme:orders", first.text("id"), "renew", "", "Idempotency-Key", "k").is(200, "")
	again := w.post("acme:orders", "/v1/reservations", "{\r\n"+strings.TrimPrefix(order("1"), "{"), "Idempotency-Key", "k").is(200, "")
	require.Equal(t, first.text("id"), again.text("id"))
	require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	require.Empty(t, first.header.Get("Idempotent-Replayed"))
	require.Equal(t, 1, w.written()["reservations"])
	w.act("acme:orders", first.text("id"), "cancel", `{"reason_code":"other"}`, "Idempotency-Key", "k").is(200, "")
}

// A refusal tells a checkout what would help and nothing of others: no server, rack, price, order or customer. Support
// is shown which servers there were.
//
// Requirements: R37. Cases: XP-06.
func TestRefusalTellsACheckoutNothingOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.addServer(4096)
	w.exec(`UPDATE servers SET name = 'secret-name', rack = 'secret-rack', serial = 'secret-serial', price_amount = 7777.77`)
	w.post("acme:orders", "/v1/reservations", `{"order_id":"secret-order","order_line":"1","customer_ref":"secret-customer"}`, "Idempotency-Key", "secret-key").is(201, "")
	refusal := w.reserve("acme:checkout", "mine").is(409, "no_capacity")
	evaluation := w.post("acme:checkout", "/v1/evaluations", `{}`).is(200, "")
	for _, body := range []string{string(refusal.body), string(evaluation.body)} {
		for _, secret := range []string{"secret", "7777", "srv_", "res_"} {
			require.NotContains(t, body, secret)
		}
	}
	decision := "/v1/decisions/" + refusal.text("decision_id")
	w.get("acme:checkout", decision).is(403, "missing_scope")
	w.get("rival:support", decision).is(404, "not_found")
	require.Contains(t, string(w.get("acme:support", decision+"/candidates").is(200, "").body), server)
}

// When the server is retired and its record purged, and the organization closes, support reads of each order why it got
// what it got, with names and hardware as they were, and of each refusal that it took place.
//
// Requirements: R38. Cases: XP-04.
func TestSupportReadsWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(4096)
	w.exec(`UPDATE servers SET name = 'as it was', cpu_model = 'EPYC 7502P'`)
	made := w.reserve("acme:checkout", "made").is(201, "")
	const refusals = 7
	for i := range refusals {
		w.reserve("acme:checkout", fmt.Sprint("refused", i)).is(409, "no_capacity")
	}
	w.act("acme:orders", made.text("id"), "cancel", `{"reason_code":"staff"}`).is(200, "")
	w.exec(`UPDATE servers SET state = 'retired', name = 'purged', serial = NULL, cpu_model = NULL`)
	w.exec(`UPDATE organizations SET closing = true WHERE id = 'acme'`)

	decision := "/v1/decisions/" + made.text("decision_id")
	require.Equal(t, "as it was", w.get("acme:support", decision+"/candidates").is(200, "").text("items.0.name"))
	require.Contains(t, string(w.get("acme:support", decision).is(200, "").body), "as it was")
	order := w.get("acme:support", "/v1/orders/"+made.text("order_id")).is(200, "")
	require.Equal(t, "as it was", order.text("reservations.0.server.name"))
	require.Contains(t, string(order.body), "EPYC 7502P")
	seen := map[string]bool{}
	for more := "?outcome=no_capacity&page_size=3"; more != ""; {
		list := w.get("acme:support", "/v1/decisions"+more).is(200, "")
		for i := range list.at("items").([]any) {
			id := list.text(fmt.Sprintf("items.%d.id", i))
			require.False(t, seen[id], "listed twice")
			seen[id] = true
			w.get("acme:support", "/v1/decisions/"+id).is(200, "")
			w.get("acme:support", "/v1/decisions/"+id+"/candidates").is(200, "")
		}
		if more = list.text("next_page_token"); more != "" {
			more = "?outcome=no_capacity&page_size=3&page_token=" + url.QueryEscape(more)
		}
	}
	require.Len(t, seen, refusals)
}

// Whatever an order is called, it is found by that name, and by no other.
//
// Cases: AP-03.
func TestOrdersOfEveryName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{"a/b", "a%2Fb", "a b", "a+b", "50%", "..", ".", "../flags", "?x", "#1", "ä", "a\u0308", "😀", "a;b", `a\b`, "//", "a/"}
	for i, name := range names {
		w.addServer(1000)
		body := fmt.Sprintf(`{"order_id":%q,"order_line":"1"}`, name)
		w.post("acme:checkout", "/v1/reservations", body, "Idempotency-Key", fmt.Sprint("k", i)).is(201, "")
	}
	for _, name := range names {
		escaped := url.PathEscape(name)
		if strings.Trim(name, ".") == "" {
			escaped = strings.ReplaceAll(name, ".", "%2E")
		}
		a := w.get("acme:support", "/v1/orders/"+escaped).is(200, "")
		require.Equal(t, name, a.text("order_id"))
		list := w.get("acme:support", "/v1/reservations?order_id="+url.QueryEscape(name)).is(200, "")
		require.Len(t, list.at("items"), 1, name)
		require.Equal(t, name, list.text("items.0.order_id"))
		for _, part := range []string{"reservations", "decisions"} {
			require.Len(t, a.at(part), 1, "%s of %s", part, name)
			require.Equal(t, name, a.text(part+".0.order_id"))
		}
		for i := range a.at("events").([]any) {
			require.Equal(t, name, a.text(fmt.Sprintf("events.%d.order_id", i)))
		}
	}
}

// Every integer of an answer is exact in a client whose numbers are doubles: fences cannot grow beyond.
//
// Cases: AP-07.
func TestIntegersAreExactEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServer(4096)
	w.exec(`SELECT setval('reservation_fence', 9007199254740990)`)
	a := w.reserve("acme:orders", "1").is(201, "")
	require.Contains(t, string(a.body), `"fence":9007199254740991`)
	var beyond int
	require.NoError(t, w.pool.QueryRow(t.Context(),
		`SELECT count(*) FROM pg_sequences WHERE schemaname = 'public' AND sequencename LIKE '%fence%' AND max_value > 9007199254740991`).Scan(&beyond))
	require.Zero(t, beyond)
}

// Two organizations at once, with callers who give up in the middle: nobody is told anything of the other, and nothing
// of one is written to the other's name.
//
// Cases: AP-09. Faults: F-N1.
func TestOrganizationsStayApartUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	orgs := []string{"acme", "rival"}
	for i := range 40 {
		w.post(orgs[i%2]+":all", "/v1/servers", fmt.Sprintf(`{"name":"%s-server-%d","site":"FSN1","state":"ready"}`, orgs[i%2], i)).is(201, "")
	}
	for _, o := range orgs {
		w.key(o + ":all")
	}
	var all sync.WaitGroup
	for client := range 8 {
		mine, others := orgs[client%2], orgs[1-client%2]
		all.Go(func() {
			for n := range 48 {
				name := fmt.Sprintf("%s-order-%d-%d", mine, client, n)
				method, path, body := http.MethodPost, "/v1/reservations", fmt.Sprintf(`{"order_id":%q,"order_line":"1"}`, name)
				switch n % 4 {
				case 1:
					method, path, body = http.MethodGet, "/v1/reservations", ""
				case 2:
					method, path, body = http.MethodGet, "/v1/servers", ""
				case 3:
					path, body = "/v1/evaluations", `{}`
				}
				patience := time.Minute
				if n%3 == 0 {
					patience = time.Duration(rand.IntN(5000)) * time.Microsecond
				}
				status, answer := w.given(patience, w.key(mine+":all"), method, path, body, name)
				if status >= 500 || strings.Contains(answer, others+"-") {
					t.Errorf("%s %s as %s: %d %s", method, path, mine, status, answer)
				}
			}
		})
	}
	all.Wait()
	for _, table := range []string{"reservations", "decisions"} {
		var strangers int
		require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` WHERE order_id NOT LIKE organization_id || '-%'`).Scan(&strangers))
		require.Zero(t, strangers, table)
	}
}

// A change that is not valid is refused naming what is wrong, and leaves version, deadline and events as they were.
//
// Cases: AP-11.
func TestInvalidChangesChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.edits("acme:all", w.post("acme:operator", "/v1/servers", fullServer).is(201, "").header.Get("Location"))
	r := w.held()
	tags := func() []string {
		return []string{w.get("acme:all", server).header.Get("ETag"), w.get("acme:orders", "/v1/reservations/"+r.text("id")).header.Get("ETag")}
	}
	before, rows := tags(), w.written()
	for _, body := range []string{`{}`, `{"state":"sold"}`, `{"state":5}`, `{"memory":{"mib":-1}}`, `{"price":{"amount":"1"}}`, `{"name":7}`, `[]`, `null`, `{"position":"top"}`} {
		w.patch(server, body, "If-Match", "*").is(400, "invalid_request")
	}
	for _, body := range []string{`{"expires_at":"2999-01-01T00:00:00Z"}`, `{"seconds":0}`, `[]`, `5`} {
		w.act("acme:orders", r.text("id"), "renew", body).is(400, "invalid_request")
	}
	for _, body := range []string{`{}`, `{"service_id":""}`, `{"service_id":5}`, `{"service_id":"s","server_id":"other"}`} {
		w.act("acme:orders", r.text("id"), "convert", body).is(400, "invalid_request")
	}
	require.Equal(t, before, tags())
	require.Equal(t, rows, w.written())
}

// A caller who hangs up has a reservation or none; the key tells, and gives no second one. A hang-up is no error of the
// service, and keeps no connection.
//
// Cases: AP-13. Faults: F-N1.
func TestCallersThatHangUpFindOutByTheirKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const tries = 40
	for range tries {
		w.addServer(4096)
	}
	key := w.key("acme:checkout")
	for i := range tries {
		body := order(fmt.Sprint(i))
		w.given(time.Duration(rand.IntN(20_000))*time.Microsecond, key, http.MethodPost, "/v1/reservations", body, fmt.Sprint("k", i))
		require.Eventually(t, func() bool { // 409 while the first one is still at work
			status, answer := w.given(time.Minute, key, http.MethodPost, "/v1/reservations", body, fmt.Sprint("k", i))
			return status == 200 || status == 201 || !strings.Contains(answer, "contended")
		}, time.Minute, time.Millisecond)
	}
	require.Equal(t, tries, w.written()["reservations"])
	require.Eventually(t, func() bool { return w.pool.Stat().AcquiredConns() == 0 }, time.Minute, time.Millisecond)
	for _, record := range w.log.records(t) {
		require.NotEqual(t, "ERROR", record["level"], "%v", record)
	}
}

// Reads of what is being written all the time are answered, each with one state of it, and an inventory that is sold out is
// a problem like others.
//
// Cases: AP-15.
func TestReadsBesideWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.addServer(4096)
	first := w.reserve("acme:orders", "first").is(201, "")
	require.Equal(t, "application/problem+json", w.reserve("acme:checkout", "second").is(409, "no_capacity").header.Get("Content-Type"))
	w.act("acme:orders", first.text("id"), "cancel", "").is(200, "")
	var written atomic.Value // the reservation that is being changed
	written.Store(first.text("id"))
	key, done := w.key("acme:all"), make(chan struct{})
	var readers sync.WaitGroup
	for _, path := range []string{"/v1/servers/" + server, "/v1/reservations/%s", "/v1/reservations?server_id=" + server, "/v1/decisions/" + first.text("decision_id"), "/v1/capacity"} {
		readers.Go(func() {
			for {
				path := strings.Replace(path, "%s", written.Load().(string), 1)
				if status, answer := w.given(time.Minute, key, http.MethodGet, path, "", ""); status != 200 {
					t.Errorf("%s: %d %s", path, status, answer)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 30 {
		r := w.reserve("acme:orders", fmt.Sprint("w", i)).is(201, "")
		written.Store(r.text("id"))
		for range 3 {
			w.act("acme:orders", r.text("id"), "renew", "").is(200, "")
		}
		w.act("acme:orders", r.text("id"), "cancel", "").is(200, "")
	}
	close(done)
	readers.Wait()
}

// given sends a request for as long as its caller has patience; status 0 is no answer.
func (w *world) given(patience time.Duration, key, method, path, body, idempotency string) (status int, answer string) {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", idempotency)
	}
	res, err := w.server.Client().Do(r)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(text)
}
