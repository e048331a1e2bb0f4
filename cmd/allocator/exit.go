package main

import (
	"context"
	"errors"
	"fmt"

	"allocator/allocation"
	"allocator/client"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/reservation"
)

// The exit codes, for ever: scripts decide by them.
const (
	exitDone        = 0
	exitFailure     = 1
	exitUsage       = 2 // of the command line, or a request that the service calls invalid
	exitNotFound    = 3
	exitNoServer    = 4 // no capacity, or the release switch is off
	exitRetry       = 5 // contended, rate limited or unavailable: the same may succeed shortly
	exitNotAllowed  = 6
	exitConflict    = 7 // any other conflict, and what doctor finds
	exitInterrupted = 130
)

// usageError is a command line that cannot be meant.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// forbidden is what a key lacks a scope for, though no answer said so.
type forbidden struct{ text string }

func (e *forbidden) Error() string { return e.text }

// findings is what doctor returns when something is wrong; what it is has been printed.
type findings struct{ count int }

func (f *findings) Error() string {
	if f.count == 1 {
		return "1 check found something"
	}
	return fmt.Sprintf("%d checks found something", f.count)
}

// report prints what a command failed with, in sentences and never with a stack, and returns the exit code.
func (p *process) report(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && !p.serves:
		p.notef("allocator: interrupted")
		return exitInterrupted
	}
	p.explainError(err)
	return exitCode(err)
}

// exitCode is the table of errors that have a code of their own.
func exitCode(err error) int {
	var (
		refused   *client.Error
		wrong     *usageError
		lacking   *forbidden
		found     *findings
		invalid   *identity.InvalidError
		stale     *identity.VersionError
		exceeded  *identity.ScopeError
		converted *reservation.AlreadyConvertedError
	)
	switch {
	case errors.As(err, &refused):
		return refusalCode(refused)
	case errors.As(err, &wrong), errors.As(err, &invalid),
		errors.Is(err, featureflags.ErrPercentOutOfRange):
		return exitUsage
	case errors.Is(err, identity.ErrOrganizationNotFound), errors.Is(err, identity.ErrKeyNotFound),
		errors.Is(err, featureflags.ErrUnknownFlag), errors.Is(err, featureflags.ErrOrganizationNotFound),
		errors.Is(err, featureflags.ErrOverrideNotFound), errors.Is(err, reservation.ErrNotFound):
		return exitNotFound
	case errors.Is(err, allocation.ErrFeatureDisabled):
		return exitNoServer
	case errors.Is(err, reservation.ErrUnavailable), errors.Is(err, reservation.ErrOutcomeUnknown),
		errors.Is(err, identity.ErrUnavailable), errors.Is(err, client.ErrCutShort):
		return exitRetry
	case errors.As(err, &exceeded), errors.As(err, &lacking), errors.Is(err, identity.ErrUnauthenticated):
		return exitNotAllowed
	case errors.As(err, &found), errors.As(err, &stale), errors.As(err, &converted),
		errors.Is(err, identity.ErrOrganizationExists):
		return exitConflict
	default:
		return exitFailure
	}
}
