package postgres

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"allocator/events"
	"allocator/lease"
)

// leasing writes the leases of one resource. It implements lease.Tx.
type leasing struct {
	tx                     pgx.Tx
	organization, resource string
}

// Each write is a compare-and-swap that finds no row when it comes too late. An insertion that loses is no error, which
// would end the transaction around it.
const (
	insertLeaseSQL = `INSERT INTO leases (organization_id, resource, part, holder_id, holder_name, credential, acquired_at, expires_at, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1) ON CONFLICT DO NOTHING`
	replaceLeaseSQL = `UPDATE leases SET holder_id = $4, holder_name = $5, credential = $6, acquired_at = $7, expires_at = $8, version = version + 1
		WHERE organization_id = $1 AND resource = $2 AND part = $3 AND version = $9`
	removeLeaseSQL = `DELETE FROM leases WHERE organization_id = $1 AND resource = $2 AND part = $3 AND version = $4`
)

// Standing implements lease.Tx.
func (l *leasing) Standing(ctx context.Context) (lease.Standing, error) {
	return standing(ctx, l.tx, l.organization, []string{l.resource})
}

// Insert implements lease.Tx.
func (l *leasing) Insert(ctx context.Context, row lease.Lease) (bool, error) {
	return l.write(ctx, insertLeaseSQL, l.values(row)...)
}

// Replace implements lease.Tx.
func (l *leasing) Replace(ctx context.Context, row lease.Lease) (bool, error) {
	return l.write(ctx, replaceLeaseSQL, append(l.values(row), row.Version)...)
}

// Remove implements lease.Tx.
func (l *leasing) Remove(ctx context.Context, row lease.Lease) (bool, error) {
	return l.write(ctx, removeLeaseSQL, l.organization, l.resource, row.Key.Part, row.Version)
}

func (l *leasing) values(row lease.Lease) []any {
	return []any{
		l.organization, l.resource, row.Key.Part, row.Holder.ID, row.Holder.Name, row.Credential, row.AcquiredAt, row.ExpiresAt,
	}
}

func (l *leasing) write(ctx context.Context, sql string, args ...any) (bool, error) {
	tag, err := l.tx.Exec(ctx, sql, args...)
	return tag.RowsAffected() == 1, err
}

// leaseChannel is where changes of leases are told.
const leaseChannel = "allocator_leases"

// leaseNotice is what is told: where something changed, and not what, which may have changed again by the time of reading.
type leaseNotice struct {
	Organization string `json:"organization"`
	Resource     string `json:"resource"`
}

// Tell implements lease.Tx.
func (l *leasing) Tell(ctx context.Context) error {
	text, err := json.Marshal(leaseNotice{l.organization, l.resource})
	if err != nil {
		return err
	}
	_, err = l.tx.Exec(ctx, `SELECT pg_notify($1, $2)`, leaseChannel, string(text))
	return err
}

// TookOver implements lease.Tx.
func (l *leasing) TookOver(ctx context.Context, w lease.Writer, t lease.TakeOver) error {
	var from []string
	for _, one := range t.Removed {
		from = append(from, one.Holder.ID)
	}
	return insertAudit(ctx, l.tx, events.AuditEntry{
		OrganizationID: w.Organization, ActorKind: w.ActorKind, ActorID: w.ActorID, RequestID: w.RequestID,
		Action: events.ActionLeaseTakenOver, Subject: t.Lease.Key.String(), Outcome: events.OutcomeDone,
		Detail: map[string]string{
			"holder": w.Holder.ID, "from": strings.Join(from, ", "), "leases": strconv.Itoa(len(from)), "reason": t.Reason,
		},
	})
}
