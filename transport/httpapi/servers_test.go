package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const fullServer = `{"source":"netbox","external_id":"42","name":"web-1","serial":"CZ1234","site":"FSN1","rack":"A12","position":"12.5",
	"manufacturer":"Dell","model":"R6515","cpu":{"vendor":"AMD","model":"EPYC 7502P","sockets":1,"cores":32,"threads":64,"benchmarks":{"passmark":48000}},
	"memory":{"mib":262144,"ecc":true,"type":"DDR4"},"drives":[{"count":2,"nominal_gb":960,"medium":"ssd","interface":"nvme"}],"raid":"hardware",
	"gpus":[],"uplink_mbps":10000,"price":{"amount":"119.5","currency":"EUR"},"tags":["gold"],"attributes":{"tier":"1"},"state":"ready"}`

func TestServerKeepsEverythingThatWasSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.post("acme:operator", "/v1/servers", fullServer).is(201, "")
	require.Equal(t, `"1"`, made.header.Get("ETag"))
	read := w.get("acme:operator", made.header.Get("Location")).is(200, "")
	require.JSONEq(t, string(made.body), string(read.body))
	require.Equal(t, `"1"`, read.header.Get("ETag"))
	require.Equal(t, []any{}, read.at("gpus"), "known to have none")
	require.Equal(t, "119.50", read.text("price.amount"))
	for path, want := range map[string]string{
		"cpu.cores": "32", "cpu.benchmarks.passmark": "48000", "memory.ecc": "true", "drives.0.nominal_gb": "960", "position": "12.5", "attributes.tier": "1",
	} {
		require.Equal(t, want, read.text(path), path)
	}
	sparse := w.post("acme:operator", "/v1/servers", `{"name":"web-2","site":"FSN1","state":"planned"}`).is(201, "")
	require.Equal(t, []string{"api", "web-2"}, []string{sparse.text("source"), sparse.text("external_id")})
	require.NotContains(t, sparse.json(), "gpus", "unknown")
	require.NotContains(t, sparse.json(), "price")

	w.post("acme:operator", "/v1/servers", fullServer).is(409, "server_exists")
	a := w.post("acme:operator", "/v1/servers", `{"name":"web-3","serial":"To be filled by O.E.M.","site":" FSN1","state":"ready"}`).is(400, "invalid_request")
	require.ElementsMatch(t, []any{"/serial", "/site"}, []any{a.at("errors.0.pointer"), a.at("errors.1.pointer")})
}

// edits lets somebody edit a server, by its path, and returns the path.
func (w *world) edits(who, path string) string {
	w.t.Helper()
	id := strings.TrimPrefix(path, "/v1/servers/")
	w.do(call{who: who, method: "PUT", path: "/v1/leases/server:" + id, body: `{"seconds":3600}`}).is(200, "")
	return path
}

func (w *world) patch(path, body string, headers ...string) *answer {
	w.t.Helper()
	return w.do(call{who: "acme:all", method: "PATCH", path: path, body: body, header: headersOf(headers...)})
}

func TestServerPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.post("acme:operator", "/v1/servers", fullServer).is(201, "")
	path := w.edits("acme:all", made.header.Get("Location"))
	w.patch(path, `{"name":"new"}`).is(428, "precondition_required")
	for _, stale := range []string{`"7"`, `W/"1"`, `"anything"`, `1`} {
		a := w.patch(path, `{"name":"new"}`, "If-Match", stale).is(412, "precondition_failed")
		require.Equal(t, `"1"`, a.header.Get("ETag"))
	}
	a := w.patch(path, `{"cpu":{"cores":null,"threads":48},"memory":null,"drives":[],"gpus":null,"rack":null,"position":null,"price":{"amount":"99","currency":"USD"},"tags":[]}`, "If-Match", `"1"`).is(200, "")
	require.Equal(t, `"2"`, a.header.Get("ETag"))
	require.Equal(t, []string{"", "48", "AMD", "web-1", "99.00", ""}, []string{
		a.text("cpu.cores"), a.text("cpu.threads"), a.text("cpu.vendor"), a.text("name"), a.text("price.amount"), a.text("rack"),
	})
	require.Equal(t, []any{}, a.at("drives"))
	require.NotContains(t, a.json(), "memory")
	require.NotContains(t, a.json(), "gpus")
	w.patch(path, `{"uplink_mbps":null,"price":null,"cpu":null,"raid":null,"serial":"","attributes":{}}`, "If-Match", "*").is(200, "")
	w.patch(path, `{}`, "If-Match", "*").is(400, "invalid_request")
	w.patch(path, `{"state":"ready"}`, "If-Match", "*").is(400, "invalid_request")
}

func TestServerInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.held()
	path := w.edits("acme:all", "/v1/servers/"+r.text("server.id"))
	w.patch(path, `{"memory":{"mib":1}}`, "If-Match", "*").is(409, "server_in_use")
	w.patch(path, `{"tags":["seen"]}`, "If-Match", "*").is(200, "")
	w.post("acme:all", path+"/state", `{"state":"maintenance","reason":"fan"}`).is(409, "server_in_use")
	a := w.post("acme:all", path+"/state", `{"state":"maintenance","reason":"fan","force":true}`).is(200, "")
	require.Equal(t, []string{"maintenance", "fan"}, []string{a.text("state"), a.text("state_reason")})
	gone := w.get("acme:support", "/v1/reservations/"+r.text("id"))
	require.Equal(t, []string{"cancelled", "staff", "fan"}, []string{gone.text("state"), gone.text("end_reason"), gone.text("end_text")})
}

func TestServerList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post("acme:operator", "/v1/servers", fullServer).is(201, "")
	for range 5 {
		w.addServer(1024)
	}
	for query, want := range map[string]int{
		"":                              6,
		"?site=FSN1&rack=A12":           1,
		"?rack=A12&rack=A1":             3,
		"?state=planned&state=failed":   0,
		"?serial=cz1234":                1,
		"?name=web-1&model=R6515":       1,
		"?q=r65":                        1,
		"?q=%25":                        0,
		"?page_size=1000000000":         6,
		"?site=FSN1%27%20OR%201=1%20--": 0,
	} {
		require.Len(t, w.get("acme:operator", "/v1/servers"+query).is(200, "").at("items"), want, query)
	}

	// Every server that is there throughout appears exactly once, whatever comes in between.
	seen := map[string]bool{}
	for token := ""; ; {
		a := w.get("acme:operator", "/v1/servers?site=FSN1&page_size=2"+token).is(200, "")
		for _, row := range a.at("items").([]any) {
			id := row.(map[string]any)["id"].(string)
			require.False(t, seen[id])
			seen[id] = true
		}
		if a.text("next_page_token") == "" {
			break
		}
		if len(seen) == 2 {
			w.addServer(2048)
			w.get("acme:operator", "/v1/servers?site=HEL1&page_token="+a.text("next_page_token")).is(400, "invalid_request")
			w.get("rival:operator", "/v1/servers?site=FSN1&page_token="+a.text("next_page_token")).is(400, "invalid_request")
			w.get("acme:operator", "/v1/servers?site=FSN1&page_token="+a.text("next_page_token")[1:]).is(400, "invalid_request")
		}
		token = "&page_token=" + a.text("next_page_token")
	}
	require.Len(t, seen, 7)
}
