package events

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// AuditEntry says who did what to what, and when. It is never changed, and deleted only when its time is over: a refused
// attempt after 90 days, everything else after 400. It carries no secret and nothing a customer typed.
type AuditEntry struct {
	ID             string    // "aud_" and the 32 hexadecimal digits of a UUIDv7; given by the store
	OrganizationID string    // whose trail it is in; empty: the platform's own
	At             time.Time // the database's clock; given by the store
	ActorKind      string
	ActorID        string
	Action         string // one of the Action constants
	Subject        string // id of what was acted upon
	Outcome        string // one of the Outcome constants
	RequestID      string
	Detail         map[string]string // the settings that changed, the reason of a refusal
}

// The actions of the audit trail that are decided here; doors and other packages may have their own, in the same form.
const (
	ActionOrganizationCreated  = "organization.created"
	ActionOrganizationUpdated  = "organization.updated"
	ActionKeyCreated           = "key.created"
	ActionKeyRevoked           = "key.revoked"
	ActionFlagSet              = "flag.set"
	ActionFlagOverrideSet      = "flag_override.set"
	ActionFlagOverrideDeleted  = "flag_override.deleted"
	ActionReservationCancelled = "reservation.cancelled"
	ActionReservationConverted = "reservation.converted"
	ActionReservationTakenOver = "reservation.taken_over"
	ActionBindingCreated       = "binding.created" // directly, for a server that was sold before
	ActionBindingEnded         = "binding.ended"
	ActionServerStateChanged   = "server.state_changed"
	ActionLeaseTakenOver       = "lease.taken_over"    // from another holder, who was editing
	ActionRequest              = "request"             // an attempt that was refused before it became an act: Subject is the route
	ActionRequestsSuppressed   = "requests.suppressed" // stands for refused attempts that were counted, not written one by one
)

// What became of an act.
const (
	OutcomeDone    = "done"
	OutcomeRefused = "refused"
)

// The limits of an entry, in characters; the database holds them too.
const (
	maxEntryText    = 200
	maxEntryDetails = 16
)

// Cleaned makes an entry storable whatever a stranger put into it: what is too long is cut, what is no text or could
// forge a line of a log is replaced. An attempt must not escape the audit trail by being malformed.
func (e AuditEntry) Cleaned() AuditEntry {
	texts := []*string{&e.OrganizationID, &e.ActorKind, &e.ActorID, &e.Action, &e.Subject, &e.Outcome, &e.RequestID}
	for _, text := range texts {
		*text = cleanText(*text)
	}
	detail := map[string]string{}
	names := slices.Sorted(maps.Keys(e.Detail))
	for _, name := range names[:min(len(names), maxEntryDetails)] {
		detail[cleanText(name)] = cleanText(e.Detail[name])
	}
	e.Detail = detail
	return e
}

func cleanText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
			return '\uFFFD'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > maxEntryText {
		return string(runes[:maxEntryText])
	}
	return text
}
