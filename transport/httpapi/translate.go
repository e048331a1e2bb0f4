package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"allocator/events"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/inventory"
	"allocator/lease"
	"allocator/locking"
	"allocator/reservation"
	"allocator/transport/httpapi/strictjson"
	"allocator/transport/httpapi/wire"
)

// translate turns any error into the problem that is answered. It decides by types and sentinels, never by words.
func translate(err error) *problem {
	if known, ok := errors.AsType[*problem](err); ok {
		return known
	}
	for _, of := range []func(error) *problem{ofEcho, ofFields, ofVersion, ofConversion, ofScopes, ofLease, ofTable} {
		if p := of(err); p != nil {
			if p.hidden == nil {
				p.hidden = err
			}
			if p.status == http.StatusServiceUnavailable {
				return p.retryShortly()
			}
			return p
		}
	}
	p := newProblem("internal")
	p.hidden = err
	return p
}

// ofTable finds the row whose error this is.
func ofTable(err error) *problem {
	switch { // before what they may be wrapped together with
	case errors.Is(err, reservation.ErrOutcomeUnknown):
		return newProblem("outcome_unknown")
	case errors.Is(err, locking.ErrBackend):
		return newProblem("locks_unavailable")
	}
	for i := range problemTable {
		for _, from := range problemTable[i].from {
			if errors.Is(err, from) {
				return newProblem(problemTable[i].code)
			}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return newProblem("unavailable")
	}
	return nil
}

// ofEcho translates what the router and the generated code say. Their words are not for callers.
func ofEcho(err error) *problem {
	var he *echo.HTTPError
	if !errors.As(err, &he) {
		return nil
	}
	codes := map[int]string{
		http.StatusBadRequest: "invalid_request", http.StatusNotFound: "not_found",
		http.StatusMethodNotAllowed: "method_not_allowed", http.StatusRequestEntityTooLarge: "too_large",
		http.StatusUnsupportedMediaType: "unsupported_media_type",
	}
	code, known := codes[he.Code]
	if !known {
		return nil
	}
	return newProblem(code)
}

// ofFields translates the lists of faults that the domain found.
func ofFields(err error) *problem {
	var faults []strictjson.Fault
	var byIdentity *identity.InvalidError
	var byInventory *inventory.InvalidError
	var byLocking *locking.InvalidError
	var byLease *lease.InvalidError
	switch {
	case errors.As(err, &byLocking):
		faults = append(faults, strictjson.Fault{
			Pointer: "/" + byLocking.Field, Code: strictjson.CodeMalformed, Detail: sentence(byLocking.Reason),
		})
	case errors.As(err, &byIdentity):
		for _, f := range byIdentity.Fields {
			faults = append(faults, strictjson.Fault{Pointer: f.Pointer, Code: f.Code, Detail: sentence(f.Detail)})
		}
	case errors.As(err, &byInventory):
		for _, f := range byInventory.Fields {
			faults = append(faults, strictjson.Fault{Pointer: f.Pointer, Code: f.Code, Detail: sentence(f.Detail)})
		}
	case errors.As(err, &byLease):
		for _, f := range byLease.Fields {
			faults = append(faults, strictjson.Fault{Pointer: leasePointers[f.Field], Code: f.Code, Detail: sentence(f.Detail)})
		}
	case errors.Is(err, featureflags.ErrPercentOutOfRange):
		faults = append(faults, strictjson.Fault{
			Pointer: "/percent", Code: strictjson.CodeOutOfRange, Detail: "It must lie between 0 and 100.",
		})
	case errors.Is(err, events.ErrCursorInvalid):
		faults = append(faults, strictjson.Fault{
			Pointer: "query:after", Code: strictjson.CodeMalformed, Detail: "It must be next_after of an earlier page.",
		})
	default:
		return nil
	}
	return invalid(faults...)
}

// sentence makes one of a clause of the domain, such as "must not be empty".
func sentence(clause string) string { return "It " + clause + "." }

// ofVersion answers with the version that is stored now.
func ofVersion(err error) *problem {
	var byIdentity *identity.VersionError
	var byInventory *inventory.VersionError
	var current int64
	switch {
	case errors.As(err, &byIdentity):
		current = byIdentity.Current
	case errors.As(err, &byInventory):
		current = byInventory.Current
	default:
		return nil
	}
	p := newProblem("precondition_failed")
	p.header.Set("ETag", etag(current))
	return p
}

// ofConversion answers with what the reservation became.
func ofConversion(err error) *problem {
	var converted *reservation.AlreadyConvertedError
	if !errors.As(err, &converted) {
		return nil
	}
	p := newProblem("already_converted")
	p.fill = func(body *wire.Problem) {
		body.BindingID, body.ServiceID = string(converted.Binding), converted.ServiceID
	}
	return p
}

// ofScopes names the scopes that a key cannot give.
func ofScopes(err error) *problem {
	var exceeded *identity.ScopeError
	if !errors.As(err, &exceeded) {
		return nil
	}
	p := newProblem("scope_exceeded")
	p.detail = "A key cannot give scopes that it does not have. Leave these out: " + identity.NewScopeSet(exceeded.Missing...).String() + "."
	return p
}
