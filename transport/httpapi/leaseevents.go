package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"allocator/lease"
	"allocator/transport/httpapi/wire"
)

// LeaseWatch tells of changes of presence.
type LeaseWatch interface {
	// Watch begins to watch a resource. Errors: lease.ErrTooManyWatchers.
	Watch(organization, resource string) (*lease.Watch, error)
}

// The pace of a stream. It outlives the limits of a request, so it has limits of its own: what is not read in time is cut,
// the right to watch is asked again with each comment, and after an hour the caller comes back by itself.
const (
	streamWriteTimeout = 10 * time.Second
	streamCommentEvery = 15 * time.Second
	streamLife         = time.Hour
	streamComeBack     = "retry: 2000\n\n" // milliseconds
)

// WatchLeases implements wire.StrictServerInterface. It watches before it reads the present presence, so that nothing is
// missed in between.
func (h *handlers) WatchLeases(ctx context.Context, r wire.WatchLeasesRequestObject) (wire.WatchLeasesResponseObject, error) {
	caller := callerOf(ctx)
	watch, err := h.LeaseWatch.Watch(string(caller.Organization), r.Resource)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (lease.Presence, error) {
		return h.Leases.Presence(ctx, writerOf(ctx, r.Params.LeaseHolder, ""), r.Resource)
	}
	first, err := read(ctx)
	if err != nil {
		watch.Close()
		return nil, err
	}
	k := callOf(ctx)
	return &presenceStream{
		line: k.line, watch: watch, read: read, last: first, headOnly: k.method == http.MethodHead,
		every: streamCommentEvery, ending: h.ending,
	}, nil
}

// presenceStream is one line of server-sent events. It belongs to the goroutine that serves the request.
type presenceStream struct {
	line     context.Context //nolint:containedctx // the generated code hands the response nothing but a writer
	watch    *lease.Watch
	read     func(ctx context.Context) (lease.Presence, error)
	last     lease.Presence // what the caller knows
	headOnly bool
	every    time.Duration // a comment
	ending   <-chan struct{}
}

// VisitWatchLeasesResponse implements wire.WatchLeasesResponseObject.
func (s *presenceStream) VisitWatchLeasesResponse(w http.ResponseWriter) error {
	defer s.watch.Close()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // a proxy that gathers would hold events back
	w.WriteHeader(http.StatusOK)
	if s.headOnly {
		return nil
	}
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	if err := out.send(streamComeBack + event("presence", s.last)); err != nil {
		return nil // the caller has gone; nobody reads an error
	}
	s.run(out)
	return nil
}

// run passes on what changes until the caller goes, is too slow or loses the right, or the process ends.
func (s *presenceStream) run(out *eventWriter) {
	comment := time.NewTicker(s.every)
	defer comment.Stop()
	over := time.NewTimer(streamLife)
	defer over.Stop()
	for {
		var text string
		select {
		case <-s.line.Done():
			return
		case <-s.ending:
			return
		case <-over.C:
			return
		case p, open := <-s.watch.C:
			if !open {
				return
			}
			text = s.news(p)
		case <-comment.C:
			if !s.mayStay() {
				return
			}
			text = ": here\n\n"
		}
		if err := out.send(text); err != nil {
			return
		}
	}
}

// mayStay asks whether the caller may still watch. A database that is away is no reason to send anybody off.
func (s *presenceStream) mayStay() bool {
	ctx, cancel := context.WithTimeout(s.line, streamWriteTimeout)
	defer cancel()
	_, err := s.read(ctx)
	return !errors.Is(err, lease.ErrEditRefused)
}

// news is the event that takes the caller from what it knows to p; empty if that is the same. That somebody began or ended
// is a presence, that only ends were moved is told apart: a heartbeat is no coming and going.
func (s *presenceStream) news(p lease.Presence) string {
	known := s.last
	if p.Now.Before(known.Now) {
		return "" // read before what the caller knows
	}
	s.last = p
	switch {
	case !slices.EqualFunc(known.Leases, p.Leases, sameLease):
		return event("presence", p)
	case !slices.EqualFunc(known.Leases, p.Leases, func(a, b lease.Lease) bool { return a.ExpiresAt.Equal(b.ExpiresAt) }):
		return event("kept", p)
	default:
		return ""
	}
}

func sameLease(a, b lease.Lease) bool {
	return a.Key == b.Key && a.Holder == b.Holder && a.AcquiredAt.Equal(b.AcquiredAt)
}

// event writes one event. JSON has no line breaks, so its data is one line.
func event(name string, p lease.Presence) string {
	return fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", p.Now.UnixMilli(), name, writePresence(p))
}

// eventWriter sends at once, and gives up on a caller that does not read.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (e *eventWriter) send(text string) error {
	if text == "" {
		return nil
	}
	return e.write([]byte(text))
}

func (e *eventWriter) write(text []byte) error {
	if err := e.control.SetWriteDeadline(time.Now().Add(streamWriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.control.Flush()
}
