package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"allocator/reservation"
)

// The constraints whose violation means something to the product. A test compares them with the catalog.
const (
	constraintHeldServer      = "reservations_one_held_per_server"
	constraintKey             = "reservations_one_per_key"
	constraintOccupiedServer  = "occupancy_one_per_server"
	constraintOccupiedLine    = "occupancy_one_per_order_line"
	constraintBoundServer     = "bindings_one_active_per_server"
	constraintBoundService    = "bindings_one_active_per_service"
	constraintConvertedBefore = "bindings_one_per_reservation"
	constraintDecidedInTime   = "bindings_decided_in_time"
)

// clash is what a failed statement ran into, by SQLSTATE and constraint name and never by the text of a message.
type clash int

const (
	clashNone        clash = iota // no error that the product knows: a failure
	clashServer                   // somebody else took the server
	clashKey                      // the key has a reservation
	clashLine                     // the order line has a server
	clashService                  // the service has an active binding
	clashDeadline                 // the deadline passed
	clashLocked                   // a lock was not to be had in time
	clashRepeat                   // deadlock or serialization failure: repeat the whole transaction
	clashUnavailable              // the database is away, full, or too busy
)

// clashOf reads an error of any depth of wrapping. A violated constraint that stands in no row here is a failure of
// the program, never "taken".
func clashOf(err error) clash {
	var connect *pgconn.ConnectError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &connect): // whatever the server says when it lets nobody in, no statement was run
		return clashUnavailable
	case !errors.As(err, &pg):
		return clashOfConnection(err)
	}
	switch pg.Code {
	case pgerrcode.UniqueViolation, pgerrcode.CheckViolation:
		return clashOfConstraint(pg.ConstraintName)
	case pgerrcode.DeadlockDetected, pgerrcode.SerializationFailure:
		return clashRepeat
	case pgerrcode.LockNotAvailable:
		return clashLocked
	case pgerrcode.QueryCanceled, pgerrcode.IdleInTransactionSessionTimeout, pgerrcode.ReadOnlySQLTransaction:
		return clashUnavailable
	}
	if pgerrcode.IsConnectionException(pg.Code) || pgerrcode.IsInsufficientResources(pg.Code) ||
		pgerrcode.IsOperatorIntervention(pg.Code) || pgerrcode.IsSystemError(pg.Code) {
		return clashUnavailable
	}
	return clashNone
}

func clashOfConstraint(name string) clash {
	switch name {
	case constraintHeldServer, constraintOccupiedServer, constraintBoundServer:
		return clashServer
	case constraintKey:
		return clashKey
	case constraintOccupiedLine:
		return clashLine
	case constraintBoundService:
		return clashService
	case constraintDecidedInTime:
		return clashDeadline
	}
	return clashNone
}

// clashOfConnection tells a broken or missing connection from a mistake of the program.
func clashOfConnection(err error) clash {
	if pgconn.Timeout(err) || pgconn.SafeToRetry(err) || isBroken(err) ||
		errors.Is(err, puddle.ErrClosedPool) || errors.Is(err, context.DeadlineExceeded) {
		return clashUnavailable
	}
	return clashNone
}

// translate turns what a transaction failed with into the words of the domain. Errors of the domain pass unchanged.
func translate(err error) error {
	if err == nil {
		return nil
	}
	switch clashOf(err) {
	case clashServer:
		return errors.Join(reservation.ErrServerInUse, err)
	case clashService:
		return errors.Join(reservation.ErrServiceAlreadyBound, err)
	case clashDeadline:
		return errors.Join(reservation.ErrExpired, err)
	case clashLocked, clashRepeat, clashUnavailable:
		return fmt.Errorf("%w (%w)", reservation.ErrUnavailable, err)
	case clashNone, clashKey, clashLine:
	}
	return err
}

// notFound turns the absence of a row into the domain's word for it.
func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return reservation.ErrNotFound
	}
	return translate(err)
}
