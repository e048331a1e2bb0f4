package httpapi_test

import (
	"fmt"
	"net/url"
	"testing"
)

// Times and durations at every edge: in UTC whatever offset they were written with, refused naming the field where they
// cannot be meant, and never so large that something overflows.
//
// Faults: F-T5.
func TestTimesAtEveryEdge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for written, want := range map[string]string{
		"2999-01-01T00:00:00Z": "2999-01-01T00:00:00Z", "2999-01-01T05:30:00+05:30": "2999-01-01T00:00:00Z",
		"2998-12-31T23:00:00-01:00": "2999-01-01T00:00:00Z", "2999-03-31T02:30:00+01:00": "2999-03-31T01:30:00Z", // an hour that summer time leaves out
		"9999-12-31T23:59:59Z": "9999-12-31T23:59:59Z", "2999-02-28T23:59:59.999999Z": "2999-02-28T23:59:59.999999Z",
	} {
		made := w.post("acme:admin", "/v1/keys", fmt.Sprintf(`{"name":"k","scopes":["admin"],"expires_at":%q}`, written)).is(201, "")
		if got := made.text("expires_at"); got != want {
			t.Errorf("%s is shown as %s", written, got)
		}
	}
	for _, written := range []string{
		"294277-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "-001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "1969-12-31T23:59:59Z",
		"2999-12-31T23:59:60Z", "2999-12-31T24:00:00Z", "2999-02-29T00:00:00Z", "2999-01-01T00:00:00+24:00", "2999-01-01", "infinity",
		"9999-12-31T23:59:59-23:59", "4102444800", "",
	} {
		w.post("acme:admin", "/v1/keys", fmt.Sprintf(`{"name":"k","scopes":["admin"],"expires_at":%q}`, written)).is(400, "invalid_request")
		if written != "" {
			w.get("acme:support", "/v1/reservations?expires_before="+url.QueryEscape(written)).is(400, "invalid_request")
		}
	}
	made := w.post("acme:platform", "/v1/organizations", `{"name":"Times"}`).is(201, "")
	path, tag := made.header.Get("Location"), made.header.Get("ETag")
	for _, seconds := range []string{"-1", "0", "86401", "2147483648", "9223372036854775807", "9223372036854775808", "1e3", "600.5", `"600"`} {
		w.patch(path, `{"hold_seconds":`+seconds+`}`, "If-Match", tag).is(400, "invalid_request")
	}
	for _, seconds := range []string{"60", "86400"} {
		tag = w.patch(path, `{"hold_seconds":`+seconds+`}`, "If-Match", tag).is(200, "").header.Get("ETag")
	}
}
