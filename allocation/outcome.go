package allocation

import (
	"errors"
	"time"

	"allocator/reservation"
)

// OutcomeCode is what one request came to; it stands in answers, decisions and metrics.
type OutcomeCode string

// The outcomes that leave a decision, and the two that repeat an earlier answer and leave none.
const (
	OutcomeReserved        OutcomeCode = "reserved"
	OutcomeNoCapacity      OutcomeCode = "no_capacity"
	OutcomeContended       OutcomeCode = "contended"
	OutcomeHoldLimit       OutcomeCode = "hold_limit"
	OutcomeOrderLineHeld   OutcomeCode = "order_line_held"
	OutcomeFeatureDisabled OutcomeCode = "feature_disabled"

	OutcomeReplayed OutcomeCode = "replayed" // the same key again
	OutcomeExisting OutcomeCode = "existing" // the same order line again, with another key
)

// Cause tells refusals of one kind apart.
type Cause string

// The causes of no_capacity (buy hardware, or wait) and of contended (try again shortly).
const (
	CauseInventoryEmpty Cause = "inventory_empty"
	CauseNothingMatches Cause = "nothing_matches"
	CauseAllHeld        Cause = "all_held"
	CauseAllSold        Cause = "all_sold"

	CauseSameKey       Cause = "same_key"
	CauseSameOrderLine Cause = "same_order_line"
	CauseServersTaken  Cause = "servers_taken"
	CauseScanLimit     Cause = "scan_limit"
	CauseAttemptLimit  Cause = "attempt_limit"
)

// ErrIdempotencyMismatch says that the key was used before for another request.
var ErrIdempotencyMismatch = errors.New(
	"this Idempotency-Key was used before for another request: use a new key for a new request, or send the old body again")

// ErrFeatureDisabled says that the organization may not make new reservations at present.
var ErrFeatureDisabled = errors.New("reservations are switched off for your organization: what is held or sold stays as it is; ask your administrator")

// Outcome is the answer to one request.
type Outcome struct {
	Code        OutcomeCode
	Reservation *reservation.Reservation // nil for a refusal, but the one in the way for order_line_held
	HoldToken   string                   // for the holder of a held reservation; empty after a take-over
	Decision    *Decision                // nil for replayed and existing
	Waited      time.Duration            // how much of the wish to wait was used
}

// Refused tells whether the request got no reservation.
func (o *Outcome) Refused() bool {
	switch o.Code {
	case OutcomeReserved, OutcomeReplayed, OutcomeExisting:
		return false
	default:
		return true
	}
}
