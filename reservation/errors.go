package reservation

import (
	"errors"
	"fmt"
)

// The ways in which a wish about a reservation, a binding or a server's state is refused. Doors map them to their own
// codes; none of them is a fault of the service.
var (
	ErrNotFound            = errors.New("there is nothing with this id in your organization")
	ErrExpired             = errors.New("the reservation's deadline has passed; its server may already be somebody else's: reserve again")
	ErrCancelled           = errors.New("the reservation was cancelled; reserve again")
	ErrRenewalLimit        = errors.New("the reservation has reached the end of its longest life and cannot be renewed further: convert it or let it go")
	ErrNotHolder           = errors.New("the hold token is missing or is not this reservation's: send the Hold-Token that came with the reservation")
	ErrServiceAlreadyBound = errors.New("this service already has a server: end that binding first, or convert for another service id")
	ErrServerInUse         = errors.New("the server is held or bound: wait for its reservation or end its binding first, or use force")
	ErrBindingEnded        = errors.New("the binding has already ended")
	ErrStaleFence          = errors.New("the fence is not the newest of this lock, so the lock was lost: stop what you do under it, and take it again to go on")
	ErrVersionMismatch     = errors.New("it was changed since you read it: read it again and repeat the change on what it is now")
)

// AlreadyConvertedError says that the reservation has become a binding, so that what was asked can no longer be done.
type AlreadyConvertedError struct {
	Binding   BindingID
	ServiceID string
}

// Error implements error.
func (e *AlreadyConvertedError) Error() string {
	return fmt.Sprintf("the reservation was already converted for service %s (binding %s)", e.ServiceID, e.Binding)
}

// Failures of the service itself, which a caller may answer by trying again.
var (
	// ErrUnavailable says that the database could not be reached or was too busy; nothing was written.
	ErrUnavailable = errors.New("the database cannot be reached or is too busy at the moment, and nothing was changed: try again shortly")
	// ErrOutcomeUnknown says that the answer to a commit was lost: the change may stand or not.
	ErrOutcomeUnknown = errors.New("the connection broke while the change was being stored, so it may or may not have happened: send the same request again, with the same key, to learn which")
)
