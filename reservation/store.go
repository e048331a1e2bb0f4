package reservation

import (
	"context"
	"time"

	"allocator/events"
	"allocator/identity"
	"allocator/inventory"
)

// Store keeps reservations and bindings. Reads judge deadlines by the store's own clock, so that a held row past its
// deadline is returned as StateExpired, swept or not.
type Store interface {
	// InTx runs fn in one READ COMMITTED transaction and commits when fn returns nil. A deadlock or serialization
	// failure repeats fn from the start, at most three times.
	InTx(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error

	// Convert is a transaction of its own: it locks as LockReservation does, and behind the locks writes the binding and
	// moves the reservation to StateConverted, with event and audit entry. nil means that nothing was written: there is no
	// such reservation, it is not held any more, or it is of another generation. ErrServiceAlreadyBound when the service has
	// an active binding.
	Convert(ctx context.Context, p Promotion) (*Conversion, error)

	// Reservation returns ErrNotFound for an id that the organization does not have.
	Reservation(ctx context.Context, org identity.OrganizationID, id ID) (*Reservation, error)
	// Reservations lists newest first.
	Reservations(ctx context.Context, org identity.OrganizationID, filter Filter) ([]*Reservation, error)
	// Binding returns ErrNotFound for an id that the organization does not have.
	Binding(ctx context.Context, org identity.OrganizationID, id BindingID) (*Binding, error)
	// Bindings lists newest first.
	Bindings(ctx context.Context, org identity.OrganizationID, filter BindingFilter) ([]*Binding, error)

	// ExpireDue moves at most limit held reservations past their deadline to StateExpired, over all organizations, in
	// one state-guarded statement that passes over locked rows, and returns how many it moved.
	ExpireDue(ctx context.Context, limit int) (int, error)
	// DueAfter lists due reservations in order of (deadline, id), the ones behind the cursor; locks nothing.
	DueAfter(ctx context.Context, cursor Due, limit int) ([]Due, error)
	// ExpireOne is ExpireDue for one reservation; false means that it was not due any more, or locked.
	ExpireOne(ctx context.Context, due Due) (bool, error)
}

// Tx is one transaction of a change. Locks are taken server row first, then reservation row, and only ever on one
// server.
type Tx interface {
	// LockReservation locks the reservation's server and then the reservation, waiting for both, and reads it in a new
	// statement after that, with the deadline judged by the clock then. A dead hold is moved to StateExpired on the way.
	LockReservation(ctx context.Context, org identity.OrganizationID, id ID) (*Reservation, error)
	// Renew moves the deadline to now plus the organization's hold time, never beyond MaxExpiresAt and never earlier.
	// It returns ErrExpired when the deadline passed meanwhile and ErrRenewalLimit when nothing would move.
	Renew(ctx context.Context, r *Reservation, by identity.Actor) error
	// Cancel moves the reservation to StateCancelled, or to StateExpired when the deadline passed meanwhile.
	Cancel(ctx context.Context, r *Reservation, cancel Cancellation) error
	// TakeOver raises generation and fence; ErrExpired when the deadline passed meanwhile.
	TakeOver(ctx context.Context, r *Reservation, reason string, by identity.Actor) error
	// RecordRefusedConversion leaves the durable event that somebody may have paid for a reservation that was gone.
	RecordRefusedConversion(ctx context.Context, r *Reservation, serviceID string, why string, by identity.Actor) error

	ServerTx

	// LockBinding locks the binding's server and then the binding.
	LockBinding(ctx context.Context, org identity.OrganizationID, id BindingID) (*Binding, error)
	// EndBinding ends an active binding and moves its server to end.StateAfter.
	EndBinding(ctx context.Context, b *Binding, end Ending) error

	// Audit leaves an entry in the audit trail; it is sent with the next statement or with the commit.
	Audit(entry events.AuditEntry)
}

// ServerTx is the part of a Tx that works on a server.
type ServerTx interface {
	// LockServer locks a server, moves a dead hold of it aside, and reads it and its occupancy in a new statement.
	LockServer(ctx context.Context, org identity.OrganizationID, id inventory.ServerID) (*Occupied, error)
	// CheckFence returns ErrStaleFence unless the fence is the newest that the organization's lock on the key ever had.
	// From then on nobody is granted that lock before the transaction has ended.
	CheckFence(ctx context.Context, org identity.OrganizationID, proof LockProof) error
	// SetServerState changes the state of a locked server and writes its event. Of an editor it demands a lease that covers
	// the state: lease.HeldError, LostError, ErrEditRefused.
	SetServerState(ctx context.Context, org identity.OrganizationID, change StateChange) (*inventory.Server, error)

	// BindDirectly makes a binding without a reservation on a locked server; ErrServerInUse when it is held or bound,
	// ErrServiceAlreadyBound when the service has an active binding.
	BindDirectly(ctx context.Context, org identity.OrganizationID, bind DirectBinding) (*Binding, error)
}

// Occupied is a locked server with what holds it at that moment.
type Occupied struct {
	Server  *inventory.Server
	HeldBy  ID        // a live hold
	BoundBy BindingID // an active binding
}

// Free tells whether nothing holds the server.
func (o *Occupied) Free() bool { return o.HeldBy == "" && o.BoundBy == "" }

// Filter narrows a list of reservations; zero fields ask for nothing. Values of one field are alternatives.
type Filter struct {
	OrderIDs      []string
	States        []State
	ServerIDs     []inventory.ServerID
	ExpiresBefore time.Time
	After         ID // only reservations older than this one
	Limit         int
}

// BindingFilter narrows a list of bindings; zero fields ask for nothing. Values of one field are alternatives.
type BindingFilter struct {
	ServerIDs  []inventory.ServerID
	ServiceIDs []string
	OrderIDs   []string
	Active     *bool
	After      BindingID // only bindings older than this one
	Limit      int
}

// Due names a reservation past its deadline.
type Due struct {
	Organization identity.OrganizationID
	ID           ID
	ExpiresAt    time.Time
}

// Promotion is the sale of a held server to a service.
type Promotion struct {
	Organization identity.OrganizationID
	Reservation  ID
	Generation   int64 // that the holder's token is for; 0: any, since who asks needs no token
	ServiceID    string
	By           identity.Actor
	Audit        func(made BindingID) events.AuditEntry // the entry that tells of it
}

// Cancellation says who gives a reservation up and why.
type Cancellation struct {
	Reason CancelReason
	Text   string
	By     identity.Actor
}

// StateChange says who moves a server to which state and why.
type StateChange struct {
	ServerID inventory.ServerID
	State    inventory.State
	Reason   string
	Force    bool
	Lock     LockProof // zero: none was given, and none is asked for
	// Editor is the holder of edit leases, one of which must cover the record. Empty: nobody who edits; automation that
	// changes a server's state needs no lease.
	Editor string
	By     identity.Actor
}

// LockProof is what a program that works under a lock says with what it writes: which lock, and the fence that came with
// it. Whoever slept through the end of its lock has an older fence than the one who has it now.
type LockProof struct {
	Key   string
	Fence int64 // at least 1
}

// DirectBinding describes a server that was sold before Allocator came.
type DirectBinding struct {
	ServerID  inventory.ServerID
	ServiceID string
	Since     time.Time
	Reason    string
	By        identity.Actor
}

// Ending says who ends a binding and why. DeliveryFailed sends the server to StateFailed instead of StateCleaning.
type Ending struct {
	Reason         string
	DeliveryFailed bool
	By             identity.Actor
}
