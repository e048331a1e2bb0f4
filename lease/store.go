package lease

import "context"

// Store keeps leases. Its clock is the only one.
type Store interface {
	// Claim runs fn in one transaction. Claims on one resource run one after the other: the second reads what the first
	// wrote. Claims on other resources do not wait. It answers ErrLostRace, with nothing changed, when a deadlock or a
	// lock's time-out cancelled the claim or when fn did. Within an application's own transaction it is a savepoint, and the
	// resource stays taken until that transaction is over.
	Claim(ctx context.Context, organization, resource string, fn func(ctx context.Context, tx Tx) error) error
	// Change runs fn in one transaction that is no claim: it waits for no claim, and no claim for it. After a deadlock fn
	// runs again from the start, in a new transaction, except within an application's own.
	Change(ctx context.Context, organization, resource string, fn func(ctx context.Context, tx Tx) error) error
	// Standing reads the leases of a resource without a transaction.
	Standing(ctx context.Context, organization, resource string) (Standing, error)
	// Purge deletes rows that nobody will miss, and returns how many. Nothing but the size of the table depends on it.
	Purge(ctx context.Context) (int64, error)
}

// Tx writes the leases of one resource, each write a compare-and-swap that answers false, and breaks nothing, when it
// came too late.
type Tx interface {
	// Standing reads every lease of the resource and the clock, in a statement of its own.
	Standing(ctx context.Context) (Standing, error)
	// Insert stores the first version of a lease; false if its key has a row.
	Insert(ctx context.Context, l Lease) (bool, error)
	// Replace stores the next version of the row of the lease's key; false if the row is no longer at l.Version.
	Replace(ctx context.Context, l Lease) (bool, error)
	// Remove deletes a row; false if it is no longer at l.Version.
	Remove(ctx context.Context, l Lease) (bool, error)
	// Tell lets everybody who watches the resource know, when and if the transaction commits.
	Tell(ctx context.Context) error
	// TookOver leaves an entry in the audit trail.
	TookOver(ctx context.Context, w Writer, t TakeOver) error
}

// PresenceReader answers for a policy that looks at the same database, in one question of one instant.
type PresenceReader interface {
	// Presence reads the leases of a resource, in any order, without credentials and versions, and the clock; false, and no leases, if the
	// writer may not edit.
	Presence(ctx context.Context, w Writer, resource string) (Standing, bool, error)
}
