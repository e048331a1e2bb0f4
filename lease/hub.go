package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// The bounds of watching. A watcher that is so many changes behind is cut; it comes back and begins with what is now.
const (
	MaxWatchers      = 500 // of one process
	MaxWatchersOfOne = 100 // of one organization
	maxBehind        = 16
)

// Reader reads who edits what.
type Reader interface {
	// Standing reads the leases of a resource without a transaction.
	Standing(ctx context.Context, organization, resource string) (Standing, error)
}

// Hub tells watchers who edits a resource whenever that changes: when it is told of a change, and when a lease runs out
// that nobody renewed. One per process; safe for concurrent use. Each resource is read once for all who watch it.
type Hub struct {
	reader Reader
	log    *slog.Logger
	wake   chan struct{}

	mu       sync.Mutex
	watched  map[place]*watchedResource
	perOrg   map[string]int
	watchers int
}

// place is a resource of an organization.
type place struct{ organization, resource string }

// watchedResource is who watches a resource, and when it has to be read again.
type watchedResource struct {
	watchers map[*Watch]bool
	due      time.Time // by this process's clock, which only measures how long to wait; zero: nothing to wait for
}

// NewHub makes a hub. Nobody is told anything before Run runs.
func NewHub(reader Reader, log *slog.Logger) *Hub {
	return &Hub{
		reader: reader, log: log, wake: make(chan struct{}, 1),
		watched: map[place]*watchedResource{}, perOrg: map[string]int{},
	}
}

// Watch is one watcher's line. C is closed when the watcher was too slow or the hub has ended.
type Watch struct {
	C <-chan Presence

	send chan Presence
	hub  *Hub
	at   place
}

// Watch begins to watch a resource; Close ends it. The first presence comes with the first change: read the present one
// after Watch has returned, and nothing is missed in between. Errors: ErrTooManyWatchers.
func (h *Hub) Watch(organization, resource string) (*Watch, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers >= MaxWatchers || h.perOrg[organization] >= MaxWatchersOfOne {
		return nil, ErrTooManyWatchers
	}
	w := &Watch{send: make(chan Presence, maxBehind), hub: h, at: place{organization, resource}}
	w.C = w.send
	if h.watched[w.at] == nil {
		h.watched[w.at] = &watchedResource{watchers: map[*Watch]bool{}}
	}
	h.watched[w.at].watchers[w] = true
	h.watched[w.at].due = now() // leases that stand already may run out
	h.watchers++
	h.perOrg[organization]++
	h.wakeUp()
	return w, nil
}

// Close ends the watching. It may be called again.
func (w *Watch) Close() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.hub.cut(w)
}

// cut ends a watch; the caller has h.mu.
func (h *Hub) cut(w *Watch) {
	resource := h.watched[w.at]
	if resource == nil || !resource.watchers[w] {
		return
	}
	close(w.send)
	delete(resource.watchers, w)
	if len(resource.watchers) == 0 {
		delete(h.watched, w.at)
	}
	h.watchers--
	if h.perOrg[w.at.organization]--; h.perOrg[w.at.organization] == 0 {
		delete(h.perOrg, w.at.organization)
	}
}

// Changed says that the leases of a resource have changed.
func (h *Hub) Changed(organization, resource string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.watched[place{organization, resource}]; r != nil {
		r.due = now()
		h.wakeUp()
	}
}

// AllChanged says that changes may have been missed.
func (h *Hub) AllChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.watched {
		r.due = now()
	}
	h.wakeUp()
}

// now is this process's clock: it measures how long to wait, and judges no lease.
func now() time.Time { return time.Now() } //nolint:forbidigo // likewise

func (h *Hub) wakeUp() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run tells watchers until ctx ends; then all are cut.
func (h *Hub) Run(ctx context.Context) {
	defer h.cutAll()
	for {
		at, wait := h.next()
		if wait <= 0 {
			h.tell(ctx, at)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-time.After(wait):
		}
	}
}

// next is the resource that is to be read first, and in how long.
func (h *Hub) next() (at place, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait = time.Hour
	for p, r := range h.watched {
		if left := r.due.Sub(now()); !r.due.IsZero() && left < wait {
			at, wait = p, left
		}
	}
	return at, wait
}

// retryAfter is how long a resource waits that could not be read.
const retryAfter = time.Second

// tell reads one resource and passes it on. A watcher whose line is full is cut.
func (h *Hub) tell(ctx context.Context, at place) {
	h.setDue(at, time.Time{})
	standing, err := h.reader.Standing(ctx, at.organization, at.resource)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			h.log.WarnContext(ctx, "who edits a resource could not be read, and is read again shortly", slog.String("error", err.Error()))
		}
		h.setDue(at, now().Add(retryAfter))
		return
	}
	p := Presence{Resource: at.resource, Now: standing.Now, Leases: standing.Active()}
	if end, some := p.nextEnd(); some {
		h.setDue(at, now().Add(end.Sub(p.Now)))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.watched[at]
	if r == nil {
		return
	}
	for w := range r.watchers {
		select {
		case w.send <- p:
		default:
			h.cut(w)
		}
	}
}

// setDue sets when a resource is to be read again, unless that is wanted earlier.
func (h *Hub) setDue(at place, due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.watched[at]; r != nil && (due.IsZero() || r.due.IsZero() || due.Before(r.due)) {
		r.due = due
	}
}

// nextEnd is when the first of the leases runs out.
func (p Presence) nextEnd() (end time.Time, some bool) {
	for _, l := range p.Leases {
		if !some || l.ExpiresAt.Before(end) {
			end, some = l.ExpiresAt, true
		}
	}
	return end, some
}

func (h *Hub) cutAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.watched {
		for w := range r.watchers {
			h.cut(w)
		}
	}
}
