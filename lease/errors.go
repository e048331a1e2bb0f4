package lease

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What the service answers when it cannot do as asked.
var (
	// ErrHeld is matched by every HeldError.
	ErrHeld = errors.New("somebody else is editing this")
	// ErrLost is matched by every LostError.
	ErrLost = errors.New("you have no lease on this any more: take it again and look at what has changed meanwhile")
	// ErrEditRefused says that the policy does not let this writer do it, whoever holds what.
	ErrEditRefused = errors.New("you may not edit this")
	// ErrCeiling says that a lease was kept by heartbeats as long as leases may be kept.
	ErrCeiling = errors.New("this lease has been kept as long as leases may be: save, and take it again when it has run out")
	// ErrTooManyWatchers says that nobody more can watch at the moment.
	ErrTooManyWatchers = errors.New("too many are watching at the moment: close a page, or read the presence instead")

	// ErrLostRace is what a Store answers when another claim came first or a lock was not to be had. The service tries
	// again, and says HeldError without a lease in the end.
	ErrLostRace = errors.New("another claim came first")
)

// HeldError says that somebody else has a lease on the key or on something that overlaps it.
type HeldError struct {
	Lease *Lease    // the one in the way; nil: races for it were lost, and nobody can tell who has it
	Now   time.Time // when it was seen
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Lease == nil {
		return ErrHeld.Error() + ": several claims came at once, try again shortly"
	}
	return fmt.Sprintf("%v: %s has %s for %d more seconds", ErrHeld, e.Lease.Holder.Name, e.Lease.Key, e.Lease.SecondsLeftAt(e.Now))
}

// Is makes every HeldError an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// LostError says that the writer has no lease on the key, or not any more.
type LostError struct {
	Key Key
	By  *Lease // who has it now, if anybody
	Now time.Time
}

// Error implements error.
func (e *LostError) Error() string { return ErrLost.Error() }

// Is makes every LostError an ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// FieldError is one fault of one field.
type FieldError struct {
	Field  string // "resource", "part", "seconds", "holder", "name", "reason"
	Code   string // one of the Code constants
	Detail string // a clause that says what would be right
}

// The codes of a FieldError.
const (
	CodeRequired         = "required"
	CodeTooLong          = "too_long"
	CodeInvalidUTF8      = "invalid_utf8"
	CodeControlCharacter = "control_character"
	CodeMalformed        = "malformed"
	CodeOutOfRange       = "out_of_range"
)

// InvalidError lists everything that is wrong, all at once.
type InvalidError struct {
	Fields []FieldError
}

// Error implements error.
func (e *InvalidError) Error() string {
	faults := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		faults[i] = f.Field + ": " + f.Detail
	}
	return "the lease is invalid: " + strings.Join(faults, "; ")
}
