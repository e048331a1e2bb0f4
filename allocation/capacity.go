package allocation

import (
	"cmp"
	"context"
	"slices"
	"time"

	"allocator/identity"
)

// Count says what so many servers are. Free + Held + Bound + Out = Servers.
type Count struct {
	Servers int
	Free    int // in a state in which they can be sold, and nobody holds them
	Held    int // by a reservation whose deadline is to come, whatever their state
	Bound   int // sold, whatever their state
	Out     int // nobody has them, and their state keeps them from being sold
}

func (c *Count) add(other Count) {
	c.Servers += other.Servers
	c.Free += other.Free
	c.Held += other.Held
	c.Bound += other.Bound
	c.Out += other.Out
}

// Grouping is what groups of servers are told apart by.
type Grouping struct{ Site, Model bool }

// CapacityGroup is the servers of one site and model. What they are not told apart by is empty.
type CapacityGroup struct {
	Site, Model string
	Count
}

// Capacity is what the servers of an organization are at one moment.
type Capacity struct {
	At     time.Time // by the store's clock
	Total  Count
	Groups []CapacityGroup // those that have a server, by site and model
}

// Capacity counts the organization's servers as Reserve would find them. The catalog is brought up to date from the
// database first, by a read that begins after the call, so what is counted is never from memory alone. Any error is a
// failure of the store.
func (a *Allocator) Capacity(ctx context.Context, caller identity.Caller, by Grouping) (*Capacity, error) {
	var counted *Capacity
	err := a.lookNow(ctx, caller.Organization, func(known *index) { counted = known.capacity(by) })
	return counted, err
}

// cell is where servers are counted together.
type cell struct{ site, model string }

// capacity adds up the kinds. The index is locked for reading.
func (x *index) capacity(by Grouping) *Capacity {
	counts := make([]Count, len(x.cells))
	for _, k := range x.kinds {
		counts[k.cell].add(k.count())
	}
	c := &Capacity{At: x.now}
	groups := map[cell]*Count{}
	for i, one := range x.cells {
		if counts[i].Servers == 0 {
			continue // its servers have moved to another one
		}
		c.Total.add(counts[i])
		key := by.of(one)
		if groups[key] == nil {
			groups[key] = &Count{}
		}
		groups[key].add(counts[i])
	}
	c.Groups = inOrder(groups)
	return c
}

func (g Grouping) of(c cell) cell {
	if !g.Site {
		c.site = ""
	}
	if !g.Model {
		c.model = ""
	}
	return c
}

func inOrder(counts map[cell]*Count) []CapacityGroup {
	groups := make([]CapacityGroup, 0, len(counts))
	for c, count := range counts {
		groups = append(groups, CapacityGroup{c.site, c.model, *count})
	}
	slices.SortFunc(groups, func(a, b CapacityGroup) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Model, b.Model))
	})
	return groups
}
