package allocation

import (
	"context"
	"sync"
	"time"

	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// DefaultMaxAge is how old a catalog may be before a request brings it up to date first.
const DefaultMaxAge = 100 * time.Millisecond

// Catalog keeps in memory what servers an organization has and who holds them, so that the first pass of a request costs
// nothing of the database. It is a hint and never an authority: the lock step judges again in SQL, and no_capacity is
// said only after one more read of the database. What this process writes is known at once, what others write after at
// most the maximum age; nothing has to be delivered for that, so a paused or restarted process heals by itself.
//
// Safe for concurrent use. An organization is read in full when it is first asked about.
type Catalog struct {
	maxAge time.Duration

	mu   sync.Mutex
	orgs map[identity.OrganizationID]*tracked
}

// tracked is one organization's index and when it was read last.
type tracked struct {
	*index
	reading chan struct{} // held by the one that reads what is new

	mu   sync.Mutex
	read time.Time // when the last read began, by this process's monotonic clock
	lost time.Time // what was read before then is out of date
	busy map[inventory.ServerID]int

	filling *filling // nil: nobody reads everything
}

func newCatalog() *Catalog {
	return &Catalog{maxAge: DefaultMaxAge, orgs: map[identity.OrganizationID]*tracked{}}
}

func (c *Catalog) tracked(org identity.OrganizationID) *tracked {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.orgs[org]
	if t == nil {
		t = &tracked{index: newIndex(), reading: make(chan struct{}, 1), busy: map[inventory.ServerID]int{}}
		c.orgs[org] = t
	}
	return t
}

// maxBehind is how old a catalog may be while a sibling is reading what is new; then a request waits for it.
const maxBehind = 2 * time.Second

// bringUp reads what is new if the index is too old. Of requests that come together one reads, and the others go on
// with what is known, unless that is nothing or very old. With a maximum age of 0 what is known then was read after
// bringUp was called; of requests that wait for that together, one reads for all.
func (t *tracked) bringUp(ctx context.Context, maxAge time.Duration, read Feed) error {
	called := time.Now() //nolint:forbidigo // the age of what is in memory is no deadline of a reservation
	if done, err := t.bringUpAtOnce(ctx, called, maxAge, read); done {
		return err
	}
	select {
	case t.reading <- struct{}{}: // the sibling has finished
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.reading }()
	if t.readSince(called.Add(-maxAge)) {
		return nil
	}
	return t.readNow(ctx, read)
}

// bringUpInTx is bringUp for one that reads in a transaction of its own. It does not wait for a sibling, who may be waiting
// for its connection.
func (t *tracked) bringUpInTx(ctx context.Context, maxAge time.Duration, read Feed) error {
	called := time.Now() //nolint:forbidigo // likewise
	if done, err := t.bringUpAtOnce(ctx, called, maxAge, read); done {
		return err
	}
	return t.readNow(ctx, read)
}

// bringUpAtOnce is done unless a sibling is reading what the caller must know.
func (t *tracked) bringUpAtOnce(ctx context.Context, called time.Time, maxAge time.Duration, read Feed) (done bool, err error) {
	if t.readSince(called.Add(-maxAge)) {
		return true, nil
	}
	select {
	case t.reading <- struct{}{}:
		defer func() { <-t.reading }()
		return true, t.readNow(ctx, read)
	default:
		return maxAge > 0 && t.readSince(called.Add(-maxBehind)), nil
	}
}

// readNow reads what is new.
func (t *tracked) readNow(ctx context.Context, read Feed) error {
	began := time.Now() //nolint:forbidigo // the age of what is in memory is no deadline of a reservation
	news, err := read(ctx, t.position())
	if err != nil {
		return err
	}
	t.apply(news)
	t.mu.Lock()
	defer t.mu.Unlock()
	if began.After(t.read) { // else somebody who began later was quicker
		t.read = began
	}
	return nil
}

// readSince tells whether a read that began then or later has brought the index up, and nothing has outdated it since.
func (t *tracked) readSince(then time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.read.IsZero() && !t.read.Before(then) && !t.read.Before(t.lost)
}

// source is where news come from.
type source interface {
	News(ctx context.Context, org identity.OrganizationID, since Horizon) (News, error)
}

// news reads what is new. The error is errUnread if nothing is known so far, if the database is not the one that it was
// (then nothing that is known counts), or if more was changed than one read may bring.
func (x *index) news(ctx context.Context, from source, org identity.OrganizationID, since Horizon) (News, error) {
	if since.IsZero() {
		return News{}, errUnread
	}
	news, err := from.News(ctx, org, since)
	if err == nil && (news.TooMuch && x.forget() || x.forgetUnless(news.Epoch, news.At)) {
		return News{}, errUnread
	}
	return news, err
}

// position is where the next read goes on; the zero one before the first.
func (x *index) position() Horizon {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.horizon
}

// claim marks a server as being tried by a request of this process, until release.
func (t *tracked) claim(id inventory.ServerID) (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy[id]++
	return func() { t.unclaim(id) }
}

// claimFirst claims the first of these that nobody has claimed; nil if there is none.
func (t *tracked) claimFirst(ranked []hit) (first *hit, release func()) {
	for i := range ranked {
		if t.claimIdle(ranked[i].id) {
			return &ranked[i], func() { t.unclaim(ranked[i].id) }
		}
	}
	return nil, nil
}

func (t *tracked) claimIdle(id inventory.ServerID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[id] > 0 {
		return false
	}
	t.busy[id]++
	return true
}

func (t *tracked) unclaim(id inventory.ServerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[id]--; t.busy[id] == 0 {
		delete(t.busy, id)
	}
}

func (t *tracked) isBusy(id inventory.ServerID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy[id] > 0
}

// ReservationChanged takes in what this process has just committed about a reservation. It implements
// reservation.Watcher.
func (c *Catalog) ReservationChanged(r *reservation.Reservation) {
	if r.State == reservation.StateConverted {
		return // its binding says what became of the server
	}
	c.tracked(r.Organization).apply(News{Holdings: []Holding{{
		Server: r.Server.ID, Fence: r.Fence, Version: r.Version, Taken: r.State.Holds(), Until: r.ExpiresAt,
	}}})
}

// BindingChanged takes in what this process has just committed about a binding. The end of one changes its server's
// record as well, so the next request reads both: the one without the other would be a free server.
func (c *Catalog) BindingChanged(b *reservation.Binding) {
	t := c.tracked(b.Organization)
	if !b.Active() {
		t.outdate()
		return
	}
	t.apply(News{Holdings: []Holding{{
		Server: b.Server.ID, Fence: b.Fence, Sold: true, Version: b.Version, Taken: true,
	}}})
}

// ServersChanged lets the next request of the organization read what is new.
func (c *Catalog) ServersChanged(org identity.OrganizationID) { c.tracked(org).outdate() }

func (t *tracked) outdate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = time.Now() //nolint:forbidigo // likewise
}
