package reservation

import "slices"

// State is where a reservation stands.
type State string

// The four states. A reservation leaves StateHeld once and never returns.
const (
	StateHeld      State = "held"
	StateConverted State = "converted"
	StateExpired   State = "expired"
	StateCancelled State = "cancelled"
)

// States lists all states.
func States() []State { return []State{StateHeld, StateConverted, StateExpired, StateCancelled} }

// Valid tells whether s is one of the four states.
func (s State) Valid() bool { return slices.Contains(States(), s) }

// Holds tells whether a reservation in this state keeps its server from others. It mirrors the table
// reservation_states and the predicate of the index reservations_one_held_per_server; a test compares all three.
func (s State) Holds() bool { return s == StateHeld }

// CancelReason is why somebody gave a reservation up.
type CancelReason string

// The reasons a cancellation can carry.
const (
	CancelCustomerAbandoned CancelReason = "customer_abandoned"
	CancelPaymentFailed     CancelReason = "payment_failed"
	CancelFraud             CancelReason = "fraud"
	CancelStaff             CancelReason = "staff"
	CancelOther             CancelReason = "other"
)

// CancelReasons lists every reason that a caller may give.
func CancelReasons() []CancelReason {
	return []CancelReason{CancelCustomerAbandoned, CancelPaymentFailed, CancelFraud, CancelStaff, CancelOther}
}
