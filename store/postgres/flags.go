package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/events"
	"allocator/featureflags"
	"allocator/identity"
)

// Flags keeps the release switches. It implements featureflags.Store.
type Flags struct{ pool *pgxpool.Pool }

var _ featureflags.Store = (*Flags)(nil)

// NewFlags makes the store.
func NewFlags(pool *pgxpool.Pool) *Flags { return &Flags{pool: pool} }

// flagRow is a global value (Percent set) or an override (OrganizationID and Enabled set).
type flagRow struct {
	Key            string
	OrganizationID *string
	Percent        *int
	Enabled        *bool
	Changed        featureflags.Change
}

func scanFlagRow(row pgx.CollectableRow) (flagRow, error) {
	var r flagRow
	err := row.Scan(&r.Key, &r.OrganizationID, &r.Percent, &r.Enabled, &r.Changed.At, &r.Changed.ActorKind, &r.Changed.ActorID)
	r.Changed.At = r.Changed.At.UTC()
	return r, err
}

// Flags implements featureflags.Store. One statement, so that global values and overrides are of one instant.
func (s *Flags) Flags(ctx context.Context) ([]featureflags.Flag, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT key, NULL AS organization_id, percent, NULL::boolean, updated_at, updated_by_kind, updated_by_id FROM flags
		UNION ALL
		SELECT key, organization_id, NULL, enabled, updated_at, updated_by_kind, updated_by_id FROM flag_overrides
		ORDER BY key, organization_id NULLS FIRST`)
	if err != nil {
		return nil, wrapped("read the switches", err)
	}
	list, err := pgx.CollectRows(rows, scanFlagRow)
	return gatherFlags(list), wrapped("read the switches", err)
}

// gatherFlags makes a switch of each run of rows with one key. An override may stand without a global value.
func gatherFlags(rows []flagRow) []featureflags.Flag {
	var flags []featureflags.Flag
	for _, r := range rows {
		if len(flags) == 0 || flags[len(flags)-1].Key != r.Key {
			flags = append(flags, featureflags.Flag{Key: r.Key})
		}
		flag := &flags[len(flags)-1]
		if r.OrganizationID == nil {
			flag.Percent, flag.Changed = *r.Percent, r.Changed
			continue
		}
		flag.Overrides = append(flag.Overrides, featureflags.Override{
			OrganizationID: *r.OrganizationID, Enabled: *r.Enabled, Changed: r.Changed,
		})
	}
	return flags
}

// auditFlag is the audit entry for a switch; an empty organization is the platform.
func auditFlag(by featureflags.By, organizationID, action, key string, detail map[string]string) *events.AuditEntry {
	return &events.AuditEntry{
		OrganizationID: organizationID,
		ActorKind:      by.ActorKind,
		ActorID:        by.ActorID,
		Action:         action,
		Subject:        key,
		Outcome:        events.OutcomeDone,
		RequestID:      by.RequestID,
		Detail:         detail,
	}
}

// organizationExists holds for ever once it is true: organizations are never deleted.
func organizationExists(ctx context.Context, q querier, id string) (exists bool, err error) {
	if !identity.OrganizationID(id).Valid() {
		return false, nil
	}
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM organizations WHERE id = $1)`, id).Scan(&exists)
	return exists, err
}
