package httpapi

import (
	"allocator/allocation"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/inventory"
	"allocator/lease"
	"allocator/locking"
	"allocator/reservation"
)

// problemType is one row of the table of errors: everything that a caller is told of one code.
type problemType struct {
	code     string
	status   int
	action   string // what the caller's screen should offer
	title    string
	sentence string  // what can be done; an answer may have a more precise one
	from     []error // of the domain
}

// retryable tells whether the same request may succeed later.
func (t *problemType) retryable() bool { return t.action == actionRetry }

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
	row("invalid_request", 400, actionChangeRequest, "The request is invalid",
		"Correct the fields that are listed and send it again."),
	row("idempotency_key_invalid", 400, actionChangeRequest, "The Idempotency-Key is missing or invalid",
		"Send exactly one Idempotency-Key of 1 to 255 visible ASCII characters."),
	row("idempotency_mismatch", 422, actionChangeRequest, "The Idempotency-Key was used for another request",
		"Use a new Idempotency-Key for a new request, or send the old body again.",
		allocation.ErrIdempotencyMismatch),
	row("unauthenticated", 401, actionContactSupport, "The API key is missing or not accepted",
		"Send Authorization: Bearer with an API key that is neither expired nor revoked.",
		identity.ErrUnauthenticated),
	row("missing_scope", 403, actionContactSupport, "The API key may not do this",
		"Use a key that has one of the scopes that this needs."),
	row("scope_exceeded", 403, actionChangeRequest, "A key cannot give scopes that it does not have",
		"Leave those scopes out, or use a key that has them."),
	row("not_found", 404, actionNone, "There is nothing here",
		"There is nothing with this address or id in your organization; check how it is spelled.",
		reservation.ErrNotFound, inventory.ErrNotFound, identity.ErrOrganizationNotFound, identity.ErrKeyNotFound,
		locking.ErrUnknownJob,
		featureflags.ErrUnknownFlag, featureflags.ErrOverrideNotFound, featureflags.ErrOrganizationNotFound),
	row("method_not_allowed", 405, actionChangeRequest, "This address has no such method",
		"Use one of the methods that the Allow header lists."),
	row("decision_gone", 410, actionNone, "The decision is no longer kept",
		"Decisions are kept for a time; this one is older.",
		allocation.ErrDecisionGone),
	row("precondition_failed", 412, actionChangeRequest, "It was changed since you read it",
		"Read it again and repeat the change on what it is now.",
		reservation.ErrVersionMismatch, inventory.ErrVersionMismatch),
	row("too_large", 413, actionChangeRequest, "The request is too large",
		"Send a body of at most 64 KiB."),
	row("unsupported_media_type", 415, actionChangeRequest, "The body has the wrong type",
		"Send JSON in UTF-8, not compressed, with Content-Type: application/json."),
	row("precondition_required", 428, actionChangeRequest, "An If-Match is needed",
		"Read it first and send its ETag as If-Match."),
	row("rate_limited", 429, actionRetry, "Too many requests",
		"Wait as long as Retry-After says, then send it again."),

	// What has been reserved, sold or recorded already.
	row("no_capacity", 409, actionChooseOther, "Nothing fits",
		"No server meets every requirement and is free: relax a requirement, wait for a hold to run out, or add hardware."),
	row("contended", 409, actionRetry, "Somebody was faster",
		"Others were at the servers that fit at that moment: try again shortly with the same Idempotency-Key."),
	row("feature_disabled", 403, actionContactSupport, "Reservations are switched off",
		"New reservations are switched off for your organization; what is held or sold stays as it is. Ask your administrator.",
		allocation.ErrFeatureDisabled),
	row("hold_limit", 409, actionNone, "The customer has too many open reservations",
		"Convert or cancel one of the customer's open reservations first."),
	row("order_line_held", 409, actionChangeRequest, "The order line already has a server",
		"Cancel the reservation that the order line has, or use another order line or unit."),
	row("renewal_limit", 409, actionNone, "It cannot be renewed any further",
		"The reservation has reached the end of its longest life: convert it or let it go.",
		reservation.ErrRenewalLimit),
	row("reservation_expired", 409, actionChooseOther, "The reservation has expired",
		"Its server may already be somebody else's: reserve again.",
		reservation.ErrExpired),
	row("reservation_cancelled", 409, actionChooseOther, "The reservation was cancelled",
		"Reserve again.",
		reservation.ErrCancelled),
	row("not_holder", 403, actionChangeRequest, "The hold token is missing or wrong",
		"Send the hold_token that came with the reservation as Hold-Token.",
		reservation.ErrNotHolder),
	row("already_converted", 409, actionNone, "The reservation was already converted",
		"Its server is sold to a service: see the binding."),
	row("service_already_bound", 409, actionChangeRequest, "The service already has a server",
		"End the binding that the service has first, or use another service id.",
		reservation.ErrServiceAlreadyBound),
	row("binding_ended", 409, actionNone, "The binding has already ended",
		"There is nothing left to end.",
		reservation.ErrBindingEnded),
	row("server_in_use", 409, actionChangeRequest, "The server is held or sold",
		"Wait until its reservation ends, or end its binding first; a change of state can also be forced.",
		reservation.ErrServerInUse, inventory.ErrInUse),
	row("server_exists", 409, actionChangeRequest, "The server is already there",
		"A server with this source and external_id exists: change that one, or give another external_id.",
		inventory.ErrExists),
	row("lock_held", 409, actionRetry, "Somebody else has the lock",
		"Try again when Retry-After has passed, or leave the work to whoever has the lock."),
	row("lock_lost", 409, actionNone, "The lock is not yours, or not any more",
		"Stop what you do under it, and take it again to go on: it ran out, was released, or its token is another one.",
		locking.ErrNotOwner),
	row("stale_fence", 409, actionNone, "Somebody else has had the lock since",
		"Nothing was changed. The fence is not the newest of this lock: stop what you do under it, and take it again to go on.",
		reservation.ErrStaleFence),
	row("job_running", 409, actionRetry, "The job runs already",
		"It runs here or on another process: wait until that run is over."),
	row("lease_held", 409, actionRetry, "Somebody else is editing this",
		"Several came for it at the same moment: try again shortly.",
		lease.ErrHeld, lease.ErrLostRace),
	row("lease_lost", 410, actionChangeRequest, "You have no lease on this",
		"It ran out and somebody else had it, or it was never taken: take it, look at what has changed meanwhile, and repeat the change.",
		lease.ErrLost),
	row("edit_refused", 403, actionContactSupport, "You may not edit this",
		"Your key may not edit this, or not take it from whoever does: ask an administrator.",
		lease.ErrEditRefused),
	row("lease_ceiling", 409, actionWaitUntil, "The lease was kept as long as leases may be",
		"Save your work. When the lease has run out it can be taken again, by others too.",
		lease.ErrCeiling),
	row("organization_exists", 409, actionChangeRequest, "The organization is already there",
		"An organization with this id exists: choose another id.",
		identity.ErrOrganizationExists),

	// The service.
	row("outcome_unknown", 503, actionRetry, "It is not known whether it was done",
		"The answer of the database was lost. Send the same request again: with the same Idempotency-Key it never reserves twice.",
		reservation.ErrOutcomeUnknown),
	row("unavailable", 503, actionRetry, "The service cannot answer at the moment",
		"Nothing was changed. Wait as long as Retry-After says, then send it again.",
		reservation.ErrUnavailable, identity.ErrUnavailable, lease.ErrTooManyWatchers),
	row("locks_unavailable", 503, actionRetry, "Nobody can know who has the lock",
		"What keeps the locks does not answer. Wait as long as Retry-After says, then ask again. A lock that was just asked for may stand until its time is over.",
		locking.ErrBackend),
	row("internal", 500, actionContactSupport, "Something went wrong in the service",
		"It has been recorded under the request_id: send that to whoever runs the service."),
}

func row(code string, status int, action, title, sentence string, from ...error) problemType {
	return problemType{code: code, status: status, action: action, title: title, sentence: sentence, from: from}
}

// problemTypes is the table by code.
var problemTypes = func() map[string]*problemType {
	byCode := map[string]*problemType{}
	for i := range problemTable {
		byCode[problemTable[i].code] = &problemTable[i]
	}
	return byCode
}()
