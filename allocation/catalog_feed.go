package allocation

import (
	"context"
	"time"

	"allocator/inventory"
)

// Feed reads what the database knows that a catalog does not: what was changed by transactions that were not over at that
// horizon. It locks nothing.
type Feed func(ctx context.Context, since Horizon) (News, error)

// Horizon is a place in the history of the database: which transactions were over when it was read. It is those below Next
// without the open ones. One that stands open for hours is thus asked about by its own number, and not with all that
// others have changed meanwhile. The zero Horizon is before everything.
type Horizon struct {
	Next uint64 // from this number on, none was over
	Open string // of those below, the ones that were not: their numbers with commas between them
}

// IsZero tells whether nothing has been read.
func (h Horizon) IsZero() bool { return h == Horizon{} }

// later tells whether more transactions were over than at the other horizon. Of two with the same Next, a transaction that
// is open at one of them can only have ended by the other.
func (h Horizon) later(than Horizon) bool {
	if h.Next != than.Next {
		return h.Next > than.Next
	}
	return len(h.Open) < len(than.Open)
}

// News is what one read of a Feed brought.
type News struct {
	At       time.Time // the database's clock
	Horizon  Horizon   // where the next read goes on
	Epoch    string    // another one means that the database may have forgotten what it told before
	Servers  []inventory.Server
	Holdings []Holding
	TooMuch  bool // was changed for one read, and this is not all of it
}

// Holding says what became of one server. Of two about the same server the one with the larger (Fence, Sold, Version)
// is the later, whatever order they arrive in: the fence grows under the server's row lock, a binding comes after the
// reservation whose fence it carries, and the version grows with every change of the same row.
type Holding struct {
	Server  inventory.ServerID
	Fence   int64
	Sold    bool // about a binding, not a reservation
	Version int64
	Taken   bool      // still held or still bound
	Until   time.Time // the deadline of a hold
}

// laterThan tells whether h is the later word about the server.
func (h *Holding) laterThan(fence int64, sold bool, version int64) bool {
	if h.Fence != fence {
		return h.Fence > fence
	}
	if h.Sold != sold {
		return h.Sold
	}
	return h.Version > version
}
