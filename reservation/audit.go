package reservation

import (
	"allocator/events"
	"allocator/identity"
)

// audit leaves the entry of an act that tx is about to commit. Reserving and renewing leave none: their decision and
// their events say who did them already, and they are the two acts of every checkout.
func audit(tx Tx, caller identity.Caller, action, subject string, detail map[string]string) {
	tx.Audit(auditEntry(caller, action, subject, detail))
}

func auditEntry(caller identity.Caller, action, subject string, detail map[string]string) events.AuditEntry {
	return events.AuditEntry{
		OrganizationID: string(caller.Organization),
		ActorKind:      string(caller.Actor.Kind),
		ActorID:        caller.Actor.ID,
		Action:         action,
		Subject:        subject,
		Outcome:        events.OutcomeDone,
		RequestID:      caller.RequestID,
		Detail:         detail,
	}
}
