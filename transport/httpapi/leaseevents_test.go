package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/lease"
)

// streamed is one server-sent event.
type streamed struct {
	id, name string
	parts    []string // of the leases in it
}

// stream is somebody who watches.
type stream struct {
	t      *testing.T
	events chan streamed // closed at its end
	hangUp context.CancelFunc
}

// patience bounds a wait against hanging alone.
const patience = 30 * time.Second

func (w *world) stream(t *testing.T, base, who, resource string) *stream {
	t.Helper()
	ctx, hangUp := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/leases/"+resource+"/events", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+w.key(who))
	r.Header.Set("Last-Event-ID", "12345") // whatever it says, the present comes first
	res, err := http.DefaultClient.Do(r)   //nolint:bodyclose // by the one that reads it
	require.NoError(t, err)
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	s := &stream{t: t, events: make(chan streamed, 100), hangUp: hangUp}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		s.read(bufio.NewScanner(res.Body))
		_ = res.Body.Close()
	}()
	t.Cleanup(func() { hangUp(); <-done })
	return s
}

func (s *stream) read(lines *bufio.Scanner) {
	var e streamed
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			var p struct {
				Leases []struct {
					Part string `json:"part"`
				} `json:"leases"`
			}
			if err := json.Unmarshal([]byte(value), &p); err != nil {
				s.t.Error(err)
			}
			for _, l := range p.Leases {
				e.parts = append(e.parts, l.Part)
			}
		case "":
			if e.name != "" {
				s.events <- e
			}
			e = streamed{}
		}
	}
}

// next is the next event: its name and the parts that are edited.
func (s *stream) next() string {
	s.t.Helper()
	select {
	case e, open := <-s.events:
		require.True(s.t, open, "the stream has ended")
		require.NotEmpty(s.t, e.id)
		return strings.Join(append([]string{e.name}, e.parts...), " ")
	case <-time.After(patience):
		require.Fail(s.t, "no event came")
		return ""
	}
}

// ends waits for the end of the stream.
func (s *stream) ends() {
	s.t.Helper()
	for {
		select {
		case _, open := <-s.events:
			if !open {
				return
			}
		case <-time.After(patience):
			require.Fail(s.t, "the stream does not end")
		}
	}
}

// Who watches gets the present presence first, then one event for each coming and going, an expiry included, which nobody
// does anything for; a heartbeat is none of them and moves an end alone. What others do is not told: other resources, other
// organizations, and steps that change nothing.
//
// Requirements: E14, E17, E31. Cases: LE-07.
func TestWatchingPresence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const anna, bob = "acme:operator anna", "acme:operator bob"
	w.lease(anna, "PUT", "rack:A12", "?part=u17", minute).is(200, "")
	one, two := w.stream(t, w.server.URL, "acme:operator", "rack:A12"), w.stream(t, w.server.URL, "acme:operator", "rack:A12")
	both := func(want string) {
		t.Helper()
		require.Equal(t, want, one.next())
		require.Equal(t, want, two.next())
	}
	both("presence u17")
	w.lease("rival:operator", "PUT", "rack:A12", "", minute).is(200, "")
	w.lease(anna, "PUT", "rack:A13", "", minute).is(200, "")
	w.lease(bob, "PUT", "rack:A12", "", minute).is(409, "lease_held")
	w.lease(bob, "DELETE", "rack:A12", "", "").is(200, "")
	w.lease(bob, "PUT", "rack:A12", "?part=u18", minute).is(200, "")
	both("presence u17 u18")
	w.lease(anna, "POST", "rack:A12", "/heartbeat?part=u17", `{"seconds":120}`).is(200, "")
	both("kept u17 u18")
	w.lease(anna, "POST", "rack:A12", "/take-over", `{"seconds":60,"reason":"urgent"}`).is(200, "")
	both("presence  u17") // the whole, and the part that was anna's before
	w.lease(anna, "POST", "rack:A12", "/leave", "").is(200, "")
	both("presence")
	w.lease(bob, "PUT", "rack:A12", "?part=u1", `{"seconds":1}`).is(200, "")
	both("presence u1")
	both("presence") // it has run out

	two.hangUp()
	two.ends()
	w.lease(bob, "PUT", "rack:A12", "?part=u2", minute).is(200, "")
	require.Equal(t, "presence u2", one.next(), "one that goes takes nobody along")
	again := w.stream(t, w.server.URL, "acme:operator", "rack:A12")
	require.Equal(t, "presence u2", again.next(), "who comes back begins with what is now")
}

// A stream outlives the limits of a request, and ends with the process, which waits for no watcher.
//
// Requirements: E17.
func TestStreamOutlivesARequestAndEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hasty := httptest.NewUnstartedServer(w.door.Handler())
	hasty.Config.ReadTimeout, hasty.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	hasty.Start()
	t.Cleanup(hasty.Close)
	s := w.stream(t, hasty.URL, "acme:operator", "rack:A12")
	require.Equal(t, "presence", s.next())
	<-time.After(600 * time.Millisecond) // both limits are over
	w.lease("acme:operator", "PUT", "rack:A12", "", minute).is(200, "")
	require.Equal(t, "presence ", s.next())

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.door.Serve(ctx, listener) }()
	last := w.stream(t, "http://"+listener.Addr().String(), "acme:operator", "rack:A12")
	require.Equal(t, "presence ", last.next())
	stop()
	last.ends()
	require.NoError(t, <-served)
}

// What cannot be watched is a problem and no stream; nobody more than the bound can watch.
//
// Requirements: E17, E19.
func TestWatchingIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.get("acme:operator", "/v1/leases/a%00b/events").is(400, "invalid_request")
	require.Equal(t, "path:resource", a.text("errors.0.pointer"))
	for range lease.MaxWatchersOfOne {
		_, err := w.editors.Watch("acme", "rack:A12")
		require.NoError(t, err)
	}
	full := w.get("acme:operator", "/v1/leases/rack:A12/events").is(503, "unavailable")
	require.NotEmpty(t, full.header.Get("Retry-After"))
	w.get("rival:operator", "/v1/leases/rack:A12/events").is(200, "")
	w.exec(`UPDATE api_keys SET revoked_at = now(), revoked_by_kind = 'person', revoked_by_id = 'x' WHERE name = 'rival:operator'`)
	w.get("rival:operator", "/v1/leases/rack:A12/events").is(403, "edit_refused")
	head := w.raw(call{who: "rival:all", method: "HEAD", path: "/v1/leases/rack:A12/events"})
	require.Equal(t, 200, head.status)
	require.Empty(t, head.body)
}
