package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/events"
)

const auditIDPrefix = "aud_"

// Audit keeps the audit trail. It implements events.AuditStore.
type Audit struct{ pool *pgxpool.Pool }

var _ events.AuditStore = (*Audit)(nil)

// NewAudit makes the store.
func NewAudit(pool *pgxpool.Pool) *Audit { return &Audit{pool: pool} }

// RecordAudit implements events.AuditStore.
func (a *Audit) RecordAudit(ctx context.Context, entry events.AuditEntry) error {
	return insertAudit(ctx, a.pool, entry)
}

// AuditPage implements events.AuditStore. Entries are in the order of their time, which is not the order in which they
// are committed. So that a reader who continues after the last one misses none, the page ends before the earliest time
// that a transaction still open may have given to an entry. Reading that horizon must be over before the page's
// statement takes its snapshot: what is committed in between is then in the page.
func (a *Audit) AuditPage(ctx context.Context, query events.AuditQuery) (events.AuditPage, error) {
	after, err := parseAuditCursor(query.After)
	if err != nil {
		return events.AuditPage{}, err
	}
	var horizon time.Time
	if err := a.pool.QueryRow(ctx, auditHorizon).Scan(&horizon); err != nil {
		return events.AuditPage{}, wrapped("read the audit trail's horizon", err)
	}
	sql, args := auditPageOfAll, []any{after.at, after.id, horizon, query.Limit}
	if !query.All {
		sql, args = auditPageOfOne, append(args, query.OrganizationID)
	}
	rows, err := a.pool.Query(ctx, sql, args...)
	if err != nil {
		return events.AuditPage{}, wrapped("read the audit trail", err)
	}
	return collectAuditPage(rows, query.After)
}

// Two statements rather than one with a condition in it: each has an index that gives its page in order.
const (
	auditPageOfAll = `
		SELECT organization_id, id, at, actor_kind, actor_id, action, subject, outcome, request_id, detail
		FROM audit WHERE (at, id) > ($1, $2) AND at < $3` + auditPageOrder
	auditPageOfOne = `
		SELECT organization_id, id, at, actor_kind, actor_id, action, subject, outcome, request_id, detail
		FROM audit WHERE (at, id) > ($1, $2) AND at < $3 AND organization_id = $5` + auditPageOrder
	auditPageOrder = ` ORDER BY at, id LIMIT $4`
)

// auditHorizon is the earliest time that an open transaction of another session may have given to an entry: one that
// wrote already may have done so since its beginning, one that did not is in its present statement at the earliest.
// Needs the sessions that write to be of the same role, or one that may read pg_stat_activity.
const auditHorizon = `
	SELECT least(clock_timestamp(), min(CASE WHEN backend_xid IS NULL THEN query_start ELSE xact_start END))
	FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
		AND (backend_xid IS NOT NULL OR state = 'active')`

func collectAuditPage(rows pgx.Rows, next string) (events.AuditPage, error) {
	page := events.AuditPage{Next: next}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (events.AuditEntry, error) {
		var e events.AuditEntry
		var position auditCursor
		err := row.Scan(&e.OrganizationID, &position.id, &position.at, &e.ActorKind, &e.ActorID, &e.Action, &e.Subject,
			&e.Outcome, &e.RequestID, &e.Detail)
		e.ID, e.At = formatID(auditIDPrefix, position.id), position.at.UTC()
		page.Next = position.String()
		return e, err
	})
	if err != nil {
		return events.AuditPage{}, wrapped("read the audit trail", err)
	}
	page.Entries = entries
	return page, nil
}

// PurgeAudit implements events.AuditStore. The database's own rule refuses to delete anything younger.
func (a *Audit) PurgeAudit(ctx context.Context, limit int) (int64, error) {
	tag, err := a.pool.Exec(ctx, `
		DELETE FROM audit WHERE (organization_id, id) IN (
			SELECT organization_id, id FROM audit
			WHERE at < (SELECT clock_timestamp() - audit_retention('done'))
				OR (outcome = 'refused' AND at < (SELECT clock_timestamp() - audit_retention('refused')))
			LIMIT $1
			FOR UPDATE SKIP LOCKED)`, limit)
	if err != nil {
		return 0, wrapped("delete old entries of the audit trail", err)
	}
	return tag.RowsAffected(), nil
}
