package reservation

import "allocator/identity"

// Watcher is told what this process has committed, so that what it knows in memory is current at once. It is a help and
// never needed: whoever is not told finds out by reading. Its methods are called after the commit and must not block.
type Watcher interface {
	// ReservationChanged tells what a reservation is now.
	ReservationChanged(r *Reservation)
	// BindingChanged tells what a binding is now.
	BindingChanged(b *Binding)
	// ServersChanged tells that records of servers changed.
	ServersChanged(org identity.OrganizationID)
}

// nobody watches.
type nobody struct{}

func (nobody) ReservationChanged(*Reservation)        {}
func (nobody) BindingChanged(*Binding)                {}
func (nobody) ServersChanged(identity.OrganizationID) {}
