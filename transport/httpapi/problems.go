package httpapi

import (
	"allocator/allocation"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// problemType is one row of the table of errors: everything that a caller is told of one code.
type problemType struct {
	code      string
	status    int
	title     string
	sentence  string // what can be done; an answer may have a more precise one
	retryable bool   // the same request may succeed later
	action    string // what the caller's screen should offer
	from      []error
}

// The actions.
const (
	actionRetry          = "retry"
	actionChangeRequest  = "change_request"
	actionChooseOther    = "choose_other"
	actionWaitUntil      = "wait_until"
	actionContactSupport = "contact_support"
	actionNone           = "none"
)

// problemTable maps what can go wrong to what is answered. Refusals of a reservation are outcomes of package allocation
// and come here by their code; everything else comes by the error in from. An error that stands in no row is a fault of
// the service: it is logged in full and answered as internal, and no word of it leaves.
var problemTable = []problemType{
	// The request.
	{code: "invalid_request", status: 400, title: "The request is invalid", action: actionChangeRequest,
		sentence: "Correct the fields that are listed and send it again."},
	{code: "idempotency_key_invalid", status: 400, title: "The Idempotency-Key is missing or invalid", action: actionChangeRequest,
		sentence: "Send exactly one Idempotency-Key of 1 to 255 visible ASCII characters."},
	{code: "idempotency_mismatch", status: 422, title: "The Idempotency-Key was used for another request", action: actionChangeRequest,
		sentence: "Use a new Idempotency-Key for a new request, or send the old body again.", from: []error{allocation.ErrIdempotencyMismatch}},
	{code: "unauthenticated", status: 401, title: "The API key is missing or not accepted", action: actionContactSupport,
		sentence: "Send Authorization: Bearer with an API key that is neither expired nor revoked.", from: []error{identity.ErrUnauthenticated}},
	{code: "missing_scope", status: 403, title: "The API key may not do this", action: actionContactSupport,
		sentence: "Use a key that has one of the scopes that this needs."},
	{code: "scope_exceeded", status: 403, title: "A key cannot give scopes that it does not have", action: actionChangeRequest,
		sentence: "Leave those scopes out, or use a key that has them."},
	{code: "not_found", status: 404, title: "There is nothing here", action: actionNone,
		sentence: "There is nothing with this address or id in your organization; check how it is spelled.",
		from: []error{
			reservation.ErrNotFound, inventory.ErrNotFound, identity.ErrOrganizationNotFound, identity.ErrKeyNotFound,
			featureflags.ErrUnknownFlag, featureflags.ErrOverrideNotFound, featureflags.ErrOrganizationNotFound,
		}},
	{code: "method_not_allowed", status: 405, title: "This address has no such method", action: actionChangeRequest,
		sentence: "Use one of the methods that the Allow header lists."},
	{code: "decision_gone", status: 410, title: "The decision is no longer kept", action: actionNone,
		sentence: "Decisions are kept for a time; this one is older.", from: []error{allocation.ErrDecisionGone}},
	{code: "precondition_failed", status: 412, title: "It was changed since you read it", action: actionChangeRequest,
		sentence: "Read it again and repeat the change on what it is now.",
		from:     []error{reservation.ErrVersionMismatch, inventory.ErrVersionMismatch}},
	{code: "too_large", status: 413, title: "The request is too large", action: actionChangeRequest,
		sentence: "Send a body of at most 64 KiB."},
	{code: "unsupported_media_type", status: 415, title: "The body has the wrong type", action: actionChangeRequest,
		sentence: "Send JSON in UTF-8, not compressed, with Content-Type: application/json."},
	{code: "precondition_required", status: 428, title: "An If-Match is needed", action: actionChangeRequest,
		sentence: "Read it first and send its ETag as If-Match."},
	{code: "rate_limited", status: 429, title: "Too many requests", action: actionRetry, retryable: true,
		sentence: "Wait as long as Retry-After says, then send it again."},

	// What has been reserved, sold or recorded already.
	{code: "no_capacity", status: 409, title: "Nothing fits", action: actionChooseOther,
		sentence: "No server meets every requirement and is free: relax a requirement, wait for a hold to run out, or add hardware."},
	{code: "contended", status: 409, title: "Somebody was faster", action: actionRetry, retryable: true,
		sentence: "Others were at the servers that fit at that moment: try again shortly with the same Idempotency-Key."},
	{code: "feature_disabled", status: 403, title: "Reservations are switched off", action: actionContactSupport,
		sentence: "New reservations are switched off for your organization; what is held or sold stays as it is. Ask your administrator.",
		from:     []error{allocation.ErrFeatureDisabled}},
	{code: "hold_limit", status: 409, title: "The customer has too many open reservations", action: actionNone,
		sentence: "Convert or cancel one of the customer's open reservations first."},
	{code: "order_line_held", status: 409, title: "The order line already has a server", action: actionChangeRequest,
		sentence: "Cancel the reservation that the order line has, or use another order line or unit."},
	{code: "renewal_limit", status: 409, title: "It cannot be renewed any further", action: actionNone,
		sentence: "The reservation has reached the end of its longest life: convert it or let it go.", from: []error{reservation.ErrRenewalLimit}},
	{code: "reservation_expired", status: 409, title: "The reservation has expired", action: actionChooseOther,
		sentence: "Its server may already be somebody else's: reserve again.", from: []error{reservation.ErrExpired}},
	{code: "reservation_cancelled", status: 409, title: "The reservation was cancelled", action: actionChooseOther,
		sentence: "Reserve again.", from: []error{reservation.ErrCancelled}},
	{code: "not_holder", status: 403, title: "The hold token is missing or wrong", action: actionChangeRequest,
		sentence: "Send the hold_token that came with the reservation as Hold-Token.", from: []error{reservation.ErrNotHolder}},
	{code: "already_converted", status: 409, title: "The reservation was already converted", action: actionNone,
		sentence: "Its server is sold to a service: see the binding."},
	{code: "service_already_bound", status: 409, title: "The service already has a server", action: actionChangeRequest,
		sentence: "End the binding that the service has first, or use another service id.", from: []error{reservation.ErrServiceAlreadyBound}},
	{code: "binding_ended", status: 409, title: "The binding has already ended", action: actionNone,
		sentence: "There is nothing left to end.", from: []error{reservation.ErrBindingEnded}},
	{code: "server_in_use", status: 409, title: "The server is held or sold", action: actionChangeRequest,
		sentence: "Wait until its reservation ends, or end its binding first; a change of state can also be forced.",
		from:     []error{reservation.ErrServerInUse, inventory.ErrInUse}},
	{code: "server_exists", status: 409, title: "The server is already there", action: actionChangeRequest,
		sentence: "A server with this source and external_id exists: change that one, or give another external_id.", from: []error{inventory.ErrExists}},
	{code: "organization_exists", status: 409, title: "The organization is already there", action: actionChangeRequest,
		sentence: "An organization with this id exists: choose another id.", from: []error{identity.ErrOrganizationExists}},

	// The service.
	{code: "outcome_unknown", status: 503, title: "It is not known whether it was done", action: actionRetry, retryable: true,
		sentence: "The answer of the database was lost. Send the same request again: with the same Idempotency-Key it never reserves twice.",
		from:     []error{reservation.ErrOutcomeUnknown}},
	{code: "unavailable", status: 503, title: "The service cannot answer at the moment", action: actionRetry, retryable: true,
		sentence: "Nothing was changed. Wait as long as Retry-After says, then send it again.",
		from:     []error{reservation.ErrUnavailable, identity.ErrUnavailable}},
	{code: "internal", status: 500, title: "Something went wrong in the service", action: actionContactSupport,
		sentence: "It has been recorded under the request_id: send that to whoever runs the service."},
}

// problemTypes is the table by code.
var problemTypes = func() map[string]*problemType {
	byCode := map[string]*problemType{}
	for i := range problemTable {
		byCode[problemTable[i].code] = &problemTable[i]
	}
	return byCode
}()
