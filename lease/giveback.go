package lease

import "context"

// Released tells what a release found.
type Released struct {
	Held   bool // it was held, and no longer is
	Lapsed bool // it had run out before: there was nothing left to release
}

// Release gives the writer's lease on the key back. It is no claim, and not having had the lease is no error. Errors:
// InvalidError.
func (s *Service) Release(ctx context.Context, w Writer, key Key) (Released, error) {
	if err := checkKey(w, key); err != nil {
		return Released{}, err
	}
	back, err := s.giveBack(ctx, w, key.Resource, func(l Lease) bool { return l.Key == key })
	return Released{Held: len(back.active) > 0, Lapsed: back.lapsed > 0}, err
}

// Leave gives all leases of the writer on the resource and its parts back, nobody else's, and returns those that counted.
// It is no claim. Errors: InvalidError.
func (s *Service) Leave(ctx context.Context, w Writer, resource string) ([]Lease, error) {
	if err := checkKey(w, Key{Resource: resource}); err != nil {
		return nil, err
	}
	back, err := s.giveBack(ctx, w, resource, func(Lease) bool { return true })
	return back.active, err
}

// returned is what a writer gave back.
type returned struct {
	active []Lease
	lapsed int
}

// giveBack removes the writer's leases that are meant, and looks again when one was renewed from another tab meanwhile. A
// row that somebody else has taken was not the writer's any more.
func (s *Service) giveBack(ctx context.Context, w Writer, resource string, meant func(Lease) bool) (back returned, err error) {
	mine := func(l Lease) bool { return l.Holder.Is(w.Holder) && meant(l) }
	err = s.store.Change(ctx, w.Organization, resource, func(ctx context.Context, tx Tx) error {
		back = returned{active: []Lease{}}
		missed := true
		for tries := 0; missed && tries <= maxRetries; tries++ {
			standing, err := tx.Standing(ctx)
			if err != nil {
				return err
			}
			if missed, err = back.remove(ctx, tx, standing, mine); err != nil {
				return err
			}
		}
		if len(back.active) == 0 {
			return nil // nobody sees a difference
		}
		return tx.Tell(ctx)
	})
	return back, err
}

// remove removes what is meant; missed tells that a row was written between the question and this.
func (r *returned) remove(ctx context.Context, tx Tx, seen Standing, meant func(Lease) bool) (missed bool, err error) {
	for _, l := range seen.Leases {
		if !meant(l) {
			continue
		}
		gone, err := tx.Remove(ctx, l)
		switch {
		case err != nil:
			return false, err
		case !gone:
			missed = true
		case l.ActiveAt(seen.Now):
			r.active = append(r.active, l)
		default:
			r.lapsed++
		}
	}
	return missed, nil
}

// Presence tells who edits the resource. It locks nothing. Errors: InvalidError, ErrEditRefused.
func (s *Service) Presence(ctx context.Context, w Writer, resource string) (Presence, error) {
	key := Key{Resource: resource}
	if err := checkKey(w, key); err != nil {
		return Presence{}, err
	}
	standing, err := s.see(ctx, w, key)
	if err != nil {
		return Presence{}, err
	}
	return Presence{Resource: resource, Now: standing.Now, Leases: standing.Active()}, nil
}

// see reads the leases of a resource for somebody who may edit it.
func (s *Service) see(ctx context.Context, w Writer, key Key) (Standing, error) {
	if s.reader == nil {
		if err := s.mayEdit(ctx, w, key); err != nil {
			return Standing{}, err
		}
		return s.store.Standing(ctx, w.Organization, key.Resource)
	}
	standing, may, err := s.reader.Presence(ctx, w, key.Resource)
	if err == nil && !may {
		err = ErrEditRefused
	}
	return standing, err
}

// Purge deletes leases that ran out long ago; a job calls it now and then. Nothing but the size of the table depends on it.
func (s *Service) Purge(ctx context.Context) (int64, error) { return s.store.Purge(ctx) }
