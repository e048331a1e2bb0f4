package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/events"
	"allocator/identity"
)

// insertAudit writes an entry in whatever transaction q is: that of the change which the entry tells of. What does not
// fit an entry is cut, so that no act fails for the length of a request's id.
func insertAudit(ctx context.Context, q querier, entry events.AuditEntry) error {
	_, err := q.Exec(ctx, insertAuditSQL, auditArgs(entry)...)
	return wrapped("write the audit trail", err)
}

const (
	auditColumns   = `organization_id, id, actor_kind, actor_id, action, subject, outcome, request_id, detail`
	insertAuditSQL = `INSERT INTO audit (` + auditColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
)

func auditArgs(entry events.AuditEntry) []any {
	e := entry.Cleaned()
	return []any{
		e.OrganizationID, newID(), e.ActorKind, e.ActorID, e.Action, e.Subject, e.Outcome, e.RequestID, e.Detail,
	}
}

// audited runs a change in a transaction of its own and writes the entry which the change returns in the same one, so that
// neither is there without the other. No entry: nothing was changed. fn may be run again from its beginning after a
// deadlock. doing says in an error what failed.
func audited(
	ctx context.Context, pool *pgxpool.Pool, doing string,
	fn func(ctx context.Context, q querier) (*events.AuditEntry, error),
) error {
	err := inTx(ctx, pool, func(ctx context.Context, t *tx) error {
		if err := t.send(ctx); err != nil { // BEGIN, which waits in the queue
			return err
		}
		entry, err := fn(ctx, t.conn)
		if err != nil || entry == nil {
			return err
		}
		return insertAudit(ctx, t.conn, *entry)
	})
	return wrapped(doing, err)
}

// wrapped says what was being done when the database failed, in the words of the domain. The domain's own answers go
// through; they are matched with errors.Is and errors.As.
func wrapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, translate(err))
}

// auditDone is the entry for something that a caller did in the given organization's matters.
func auditDone(by identity.Caller, org identity.OrganizationID, action, subject string, detail map[string]string) *events.AuditEntry {
	return &events.AuditEntry{
		OrganizationID: string(org),
		ActorKind:      string(by.Actor.Kind),
		ActorID:        by.Actor.ID,
		Action:         action,
		Subject:        subject,
		Outcome:        events.OutcomeDone,
		RequestID:      by.RequestID,
		Detail:         detail,
	}
}
