package httpapi_test

import (
	"fmt"
	"net/url"
)

// recipe says how to make a call of one operation that succeeds. The matrices walk over all of them, so a new operation
// must be given one, and placed as to the switch.
type recipe struct {
	want     int // status of success
	whileOff int // status with the switch off; 0: the same
	// make prepares what the call needs, as the organization "acme" with every scope, and returns the call.
	make func(w *world) call
}

// simple is a call that needs nothing.
func simple(method, path, body string) func(*world) call {
	return func(*world) call { return call{method: method, path: path, body: body} }
}

// held makes a reservation of a new server and returns its answer. It works with the switch on alone.
func (w *world) held(more ...string) *answer {
	w.t.Helper()
	w.addServer(1024)
	return w.reserve("acme:all", fmt.Sprint("r", w.next()), more...).is(201, "")
}

// bound makes a binding.
func (w *world) bound() *answer {
	w.t.Helper()
	id := w.held().text("id")
	return w.post("acme:all", "/v1/reservations/"+id+"/convert", fmt.Sprintf(`{"service_id":"vps-%d"}`, w.next())).is(201, "")
}

func (w *world) newKey() string {
	w.t.Helper()
	return w.post("acme:all", "/v1/keys", `{"name":"k","scopes":["checkout"]}`).is(201, "").text("id")
}

func on(path string, prepare func(w *world) string, method, suffix, body string, headers ...string) recipe {
	return recipe{want: 200, make: func(w *world) call {
		return call{method: method, path: path + prepare(w) + suffix, body: body, header: headersOf(headers...)}
	}}
}

func idOf(prepare func(w *world) *answer) func(w *world) string {
	return func(w *world) string { return prepare(w).text("id") }
}

func (w *world) heldID() string { return w.held().text("id") }

func (w *world) decisionID() string { return w.held().text("decision_id") }

// editedServer makes a server that the caller edits.
func (w *world) editedServer() string {
	w.t.Helper()
	id := w.addServer(1024)
	w.edits("acme:all", "/v1/servers/"+id)
	return id
}

// leased takes a lease on a new rack.
func (w *world) leased() string {
	w.t.Helper()
	resource := fmt.Sprintf("rack:A%d", w.next())
	w.do(call{who: "acme:all", method: "PUT", path: "/v1/leases/" + resource, body: `{"seconds":60}`}).is(200, "")
	return resource
}

// recipes has one for every operation of the contract.
var recipes = map[string]recipe{
	"createReservation": {want: 201, whileOff: 403, make: func(w *world) call {
		body := order(fmt.Sprint("n", w.next()), `"requirements":{"servers":["`+w.addServer(1024)+`"]}`)
		return call{method: "POST", path: "/v1/reservations", body: body, header: headersOf("Idempotency-Key", fmt.Sprint("n", w.next()))}
	}},
	"evaluate": {want: 200, whileOff: 403, make: func(w *world) call {
		return call{method: "POST", path: "/v1/evaluations", body: `{"requirements":{"servers":["` + w.addServer(1024) + `"]}}`}
	}},
	"getCapacity": {want: 200, make: func(*world) call { return call{method: "GET", path: "/v1/capacity"} }},

	"listReservations":  on("/v1/reservations?server_id=", func(w *world) string { return w.held().text("server.id") }, "GET", "", ""),
	"getReservation":    on("/v1/reservations/", (*world).heldID, "GET", "", ""),
	"renewReservation":  on("/v1/reservations/", (*world).heldID, "POST", "/renew", ""),
	"cancelReservation": on("/v1/reservations/", (*world).heldID, "POST", "/cancel", `{"reason_code":"staff","text":"as asked"}`),
	"convertReservation": {want: 201, make: func(w *world) call {
		return call{method: "POST", path: "/v1/reservations/" + w.heldID() + "/convert", body: fmt.Sprintf(`{"service_id":"vps-%d"}`, w.next())}
	}},
	"takeOverReservation": on("/v1/reservations/", (*world).heldID, "POST", "/take-over", `{"reason":"the customer called"}`),

	"listDecisions":  on("/v1/decisions?order_id=", func(w *world) string { return w.held().text("order_id") }, "GET", "", ""),
	"getDecision":    on("/v1/decisions/", (*world).decisionID, "GET", "", ""),
	"listCandidates": on("/v1/decisions/", (*world).decisionID, "GET", "/candidates", ""),
	"getOrder":       on("/v1/orders/", func(w *world) string { return w.held().text("order_id") }, "GET", "", ""),

	"listBindings": on("/v1/bindings?server_id=", func(w *world) string { return w.bound().text("server.id") }, "GET", "", ""),
	"getBinding":   on("/v1/bindings/", idOf((*world).bound), "GET", "", ""),
	"endBinding":   on("/v1/bindings/", idOf((*world).bound), "POST", "/end", `{"reason":"terminated"}`),
	"createBinding": {want: 201, make: func(w *world) call {
		return call{method: "POST", path: "/v1/bindings", body: fmt.Sprintf(
			`{"server_id":%q,"service_id":"old-%d","since":"2024-01-01T00:00:00Z","reason":"sold before"}`, w.addServer(1024), w.next())}
	}},

	"listServers": {want: 200, make: simple("GET", "/v1/servers?site=FSN1", "")},
	"createServer": {want: 201, make: func(w *world) call {
		return call{method: "POST", path: "/v1/servers", body: fmt.Sprintf(`{"name":"x%d","site":"FSN1","state":"planned"}`, w.next())}
	}},
	"getServer":      on("/v1/servers/", func(w *world) string { return w.addServer(1024) }, "GET", "", ""),
	"updateServer":   on("/v1/servers/", (*world).editedServer, "PATCH", "", `{"tags":["new"]}`, "If-Match", `"1"`),
	"setServerState": on("/v1/servers/", (*world).editedServer, "POST", "/state", `{"state":"maintenance","reason":"fan"}`),

	"acquireLock": {want: 201, make: func(w *world) call {
		return call{method: "POST", path: "/v1/locks", body: fmt.Sprintf(`{"key":"machine:%d:bmc","ttl_ms":60000}`, w.next())}
	}},
	"renewLock": {want: 200, make: func(w *world) call {
		lock := w.lock("acme:all")
		return call{method: "POST", path: "/v1/locks/renew", body: fmt.Sprintf(`{"key":%q,"token":%q,"ttl_ms":60000}`, lock.text("key"), lock.text("token"))}
	}},
	"releaseLock": {want: 204, make: func(w *world) call {
		lock := w.lock("acme:all")
		return call{method: "DELETE", path: "/v1/locks?key=" + url.QueryEscape(lock.text("key")), header: headersOf("Lock-Token", lock.text("token"))}
	}},
	"listJobs": {want: 200, make: simple("GET", "/v1/jobs", "")},
	"runJob":   {want: 200, make: simple("POST", "/v1/jobs/plain/run", "")},

	"getPresence":   on("/v1/leases/", (*world).leased, "GET", "", ""),
	"acquireLease":  on("/v1/leases/", (*world).leased, "PUT", "", `{"seconds":60,"name":"Anna"}`),
	"releaseLease":  on("/v1/leases/", (*world).leased, "DELETE", "", ""),
	"keepLease":     on("/v1/leases/", (*world).leased, "POST", "/heartbeat", `{"seconds":60}`),
	"leaveResource": on("/v1/leases/", (*world).leased, "POST", "/leave", ""),
	"takeOverLease": on("/v1/leases/", (*world).leased, "POST", "/take-over", `{"seconds":60,"reason":"she is at lunch"}`),
	"watchLeases":   on("/v1/leases/", (*world).leased, "GET", "/events", ""),

	"listOrganizations": {want: 200, make: simple("GET", "/v1/organizations", "")},
	"createOrganization": {want: 201, make: func(w *world) call {
		return call{method: "POST", path: "/v1/organizations", body: fmt.Sprintf(`{"name":"Host %d"}`, w.next())}
	}},
	"getOrganization": {want: 200, make: simple("GET", "/v1/organizations/acme", "")},
	"updateOrganization": {want: 200, make: func(*world) call {
		return call{method: "PATCH", path: "/v1/organizations/acme", body: `{"name":"Acme"}`, header: headersOf("If-Match", "*")}
	}},

	"listKeys":  {want: 200, make: simple("GET", "/v1/keys", "")},
	"createKey": {want: 201, make: simple("POST", "/v1/keys", `{"name":"k","scopes":["checkout"]}`)},
	"getKey":    on("/v1/keys/", (*world).newKey, "GET", "", ""),
	"revokeKey": on("/v1/keys/", (*world).newKey, "DELETE", "", ""),

	"listFlags":          {want: 200, make: simple("GET", "/v1/flags", "")},
	"getFlag":            {want: 200, make: simple("GET", "/v1/flags/reservations", "")},
	"setFlag":            {want: 200, make: simple("PUT", "/v1/flags/reservations", `{"percent":0}`)},
	"getFlagOverride":    {want: 200, make: simple("GET", "/v1/flags/reservations/overrides/acme", "")},
	"setFlagOverride":    {want: 200, make: simple("PUT", "/v1/flags/reservations/overrides/acme", `{"enabled":true}`)},
	"deleteFlagOverride": {want: 204, make: simple("DELETE", "/v1/flags/reservations/overrides/acme", "")},
	"listAudit":          {want: 200, make: simple("GET", "/v1/audit", "")},

	"livez":   {want: 200, make: simple("GET", "/livez", "")},
	"readyz":  {want: 200, make: simple("GET", "/readyz", "")},
	"version": {want: 200, make: simple("GET", "/version", "")},
	"openapi": {want: 200, make: simple("GET", "/openapi.json", "")},
	"problem": {want: 200, make: simple("GET", "/problems/contended", "")},
}
