package allocation

import (
	"context"
	"errors"
	"time"

	"allocator/identity"
)

// errUnread says that nothing is known of an organization's servers yet, or nothing any longer; it ends a walk, whose
// transaction must not wait for what takes so long.
var errUnread = errors.New("the catalog has to be read in full first")

// maxFill bounds the first read of a catalog. A million servers take half a minute.
const maxFill = 10 * time.Minute

// filling is a read of everything that is under way.
type filling struct {
	done chan struct{}
	err  error
}

// fill sees to it that everything was read once. One read is shared by all who wait for it and belongs to none of them: it
// goes on when the one that began it has no time left, since the next would have to begin anew and would have no more.
func (a *Allocator) fill(ctx context.Context, org identity.OrganizationID) error {
	t := a.catalog.tracked(org)
	if !t.position().IsZero() {
		return nil
	}
	f := t.startFilling(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxFill)
		defer cancel()
		return t.readEverything(ctx, org, a.store)
	})
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startFilling joins the read that is under way, or begins one.
func (t *tracked) startFilling(read func() error) *filling {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.filling != nil {
		return t.filling
	}
	f := &filling{done: make(chan struct{})}
	t.filling = f
	go func() {
		defer close(f.done)
		f.err = read()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.filling = nil
	}()
	return f
}

// readEverything fills the index page by page. Until the last one is in it, nobody looks at it; of a read that fails
// nothing is kept, for the next one may be of another database.
func (t *tracked) readEverything(ctx context.Context, org identity.OrganizationID, store Store) error {
	if !t.position().IsZero() {
		return nil // somebody else's has just ended
	}
	t.beginFilling()
	began := time.Now() //nolint:forbidigo // the age of what is in memory is no deadline of a reservation
	start, err := t.applyPages(func(page func(News)) (News, error) { return store.Everything(ctx, org, page) })
	t.endFilling(err == nil)
	if err != nil {
		return err
	}
	t.begin(start)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = began
	return nil
}

// applyPages takes in one page while the next is read.
func (t *tracked) applyPages(read func(page func(News)) (News, error)) (News, error) {
	pages, applied := make(chan News), make(chan struct{})
	go func() {
		defer close(applied)
		for page := range pages {
			t.apply(page)
		}
	}()
	start, err := read(func(page News) { pages <- page })
	close(pages)
	<-applied
	return start, err
}

// beginFilling puts off what is done once for each kind.
func (x *index) beginFilling() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.clear()
	x.filling, x.grown = true, map[int32][]int32{}
}

func (x *index) endFilling(whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	grown := x.grown
	x.filling, x.grown = false, nil
	if !whole {
		x.clear()
		return
	}
	x.growAll(grown)
}
