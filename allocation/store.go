package allocation

import (
	"context"

	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// Store is what the Allocator needs of a database.
type Store interface {
	// InTx runs fn in one READ COMMITTED transaction and commits when fn returns nil. A deadlock or serialization
	// failure repeats fn from the start in a fresh transaction, at most three times.
	InTx(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// ReserveAtOnce reserves one candidate in a READ COMMITTED transaction that travels in one go with its commit: the
	// try-locks of key and order line and the server's own lock, then in a new statement what Open asks and Try judges, and
	// with it the reservation, its event and the decision, whose id it gives. It returns nil without an error if anything
	// speaks against it; then nothing was written but perhaps frozen lists, and a walk tells what it was.
	ReserveAtOnce(ctx context.Context, try Attempt, d *Decision) (*reservation.Reservation, error)
	// Everything reads, for a catalog that knows nothing, every server and what holds it, in pages that are statements of
	// their own. It returns what was read before the first: where News goes on, which tells what changed between pages.
	Everything(ctx context.Context, org identity.OrganizationID, page func(News)) (start News, err error)
	// News reads what a catalog does not know yet, as that of a Tx does, all of it at the same instant.
	News(ctx context.Context, org identity.OrganizationID, since Horizon) (News, error)

	// Decision returns reservation.ErrNotFound for an id that the organization does not have, and ErrDecisionGone for
	// one that is past its retention.
	Decision(ctx context.Context, org identity.OrganizationID, id DecisionID) (*Decision, error)
	// Decisions lists newest first, without their candidates.
	Decisions(ctx context.Context, org identity.OrganizationID, filter DecisionFilter) ([]*Decision, error)
	// FrozenPack returns the list that a decision froze; without bodies if it looked at no inventory.
	FrozenPack(ctx context.Context, org identity.OrganizationID, id DecisionID) (FrozenPack, error)
}

// Tx is one transaction of a reservation. Its methods lock at most one server at a time.
type Tx interface {
	// Open asks everything that can be asked before the inventory is looked at, in this order and each in a statement
	// of its own: the key; the advisory try-locks of key and order line; then, behind the locks, key and order line,
	// the customer's open holds and the organization's policy.
	Open(ctx context.Context, q Question) (*Opening, error)
	// News reads what was changed by transactions that were not over at that horizon. It locks nothing.
	News(ctx context.Context, org identity.OrganizationID, since Horizon) (News, error)
	// AskAgain asks key and order line in a new statement, which sees whatever has been committed meanwhile.
	AskAgain(ctx context.Context, q Question) (Existing, error)
	// ExpireHold moves one dead hold to expired and tells whether it did; it may wait for that row.
	ExpireHold(ctx context.Context, r *reservation.Reservation) (bool, error)
	// Try locks one server inside a savepoint, judges it again in a new statement and reserves it if it still
	// qualifies. Whatever it returns but TryReserved, the server is let go.
	Try(ctx context.Context, try Attempt) (TryResult, error)
	// Decide leaves the decision. It is sent together with the commit.
	Decide(ctx context.Context, d *Decision) error
	// NewDecisionID returns an id for a decision that is to be written later in this transaction.
	NewDecisionID() DecisionID
}

// Question names what a request is about.
type Question struct {
	Organization identity.OrganizationID
	Key          string
	Order        reservation.OrderLine
	CustomerRef  string
}

// Existing is what a key or an order line already has.
type Existing struct {
	ByKey  *reservation.Reservation // in any state
	ByLine *reservation.Reservation // held, or converted with an active binding; a dead hold reads as expired
}

// Opening is what a request finds when it arrives.
type Opening struct {
	ByKey      *reservation.Reservation // asked before the locks
	KeyLocked  bool                     // false: a sibling with the same key is at work
	LineLocked bool                     // false: a sibling for the same order line is at work
	Existing   Existing                 // asked behind the locks
	OpenHolds  int                      // live holds of the customer; 0 without a customer_ref
	Policy     Policy
}

// Policy is what an organization has settled about its reservations.
type Policy struct {
	HoldLimit int
	Closing   bool
}

// Attempt is the wish to reserve one server.
type Attempt struct {
	Question
	Server      inventory.ServerID
	Lapsed      bool // a hold of it is past its deadline, and nobody is known to have moved it aside
	Wanted      Wanted
	Fingerprint []byte
	Choice      Choice
	Decision    DecisionID
	TokenKey    string
	By          identity.Actor
}

// TryOutcome is what became of one candidate.
type TryOutcome string

// The outcomes of a try. Only TryLost is an attempt; TrySkipped and TryStale mean that nothing went wrong.
const (
	TryReserved  TryOutcome = "chosen"
	TrySkipped   TryOutcome = "skipped"   // somebody else has it locked, or holds it
	TryStale     TryOutcome = "stale"     // it no longer qualifies
	TryLost      TryOutcome = "lost_race" // another insert came first
	TryKeyTaken  TryOutcome = "key_taken" // the key got its reservation meanwhile
	TryLineTaken TryOutcome = "line_taken"
)

// TryResult carries the reservation of TryReserved.
type TryResult struct {
	Outcome     TryOutcome
	Reservation *reservation.Reservation
}

// DecisionFilter narrows a list of decisions; zero fields ask for nothing.
type DecisionFilter struct {
	OrderIDs []string
	Outcomes []OutcomeCode
	After    DecisionID // only decisions older than this one
	Limit    int
}
