package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/events"
	"allocator/identity"
)

// Organizations keeps organizations. It implements identity.OrganizationStore.
type Organizations struct{ pool *pgxpool.Pool }

var _ identity.OrganizationStore = (*Organizations)(nil)

// NewOrganizations makes the store.
func NewOrganizations(pool *pgxpool.Pool) *Organizations { return &Organizations{pool: pool} }

const organizationColumns = `id, name, hold_seconds, hold_limit, closing, created_at, updated_at, version`

func scanOrganization(row pgx.CollectableRow) (identity.Organization, error) {
	var o identity.Organization
	err := row.Scan(&o.ID, &o.Name, &o.HoldSeconds, &o.HoldLimit, &o.Closing, &o.CreatedAt, &o.UpdatedAt, &o.Version)
	o.CreatedAt, o.UpdatedAt = o.CreatedAt.UTC(), o.UpdatedAt.UTC()
	return o, err
}

// oneOrganization runs a query that gives one organization, or pgx.ErrNoRows.
func oneOrganization(ctx context.Context, q querier, sql string, args ...any) (identity.Organization, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return identity.Organization{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanOrganization)
}

// CreateOrganization implements identity.OrganizationStore.
func (s *Organizations) CreateOrganization(
	ctx context.Context, by identity.Caller, org identity.Organization,
) (created identity.Organization, err error) {
	err = audited(ctx, s.pool, "create the organization", func(ctx context.Context, q querier) (*events.AuditEntry, error) {
		created, err = oneOrganization(ctx, q, `
			INSERT INTO organizations (id, name, hold_seconds, hold_limit, closing)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO NOTHING
			RETURNING `+organizationColumns,
			org.ID, org.Name, org.HoldSeconds, org.HoldLimit, org.Closing)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, identity.ErrOrganizationExists
		}
		return auditDone(by, org.ID, events.ActionOrganizationCreated, string(org.ID), nil), err
	})
	return created, err
}

// Organization implements identity.OrganizationStore.
func (s *Organizations) Organization(ctx context.Context, id identity.OrganizationID) (identity.Organization, error) {
	org, err := oneOrganization(ctx, s.pool, `SELECT `+organizationColumns+` FROM organizations WHERE id = $1`, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return org, identity.ErrOrganizationNotFound
	}
	return org, wrapped("read the organization", err)
}

// Organizations implements identity.OrganizationStore.
func (s *Organizations) Organizations(
	ctx context.Context, after identity.OrganizationID, limit int,
) ([]identity.Organization, error) {
	rows, err := s.pool.Query(ctx,
		`SELECT `+organizationColumns+` FROM organizations WHERE id > $1 ORDER BY id LIMIT $2`, after, limit)
	if err != nil {
		return nil, wrapped("list organizations", err)
	}
	list, err := pgx.CollectRows(rows, scanOrganization)
	return list, wrapped("list organizations", err)
}

// UpdateOrganization implements identity.OrganizationStore.
func (s *Organizations) UpdateOrganization(
	ctx context.Context, by identity.Caller, id identity.OrganizationID, patch identity.OrganizationPatch, ifVersion int64,
) (updated identity.Organization, err error) {
	err = audited(ctx, s.pool, "change the organization", func(ctx context.Context, q querier) (*events.AuditEntry, error) {
		// 1. Read it under a lock that lets rows which refer to it go on.
		updated, err = oneOrganization(ctx, q,
			`SELECT `+organizationColumns+` FROM organizations WHERE id = $1 FOR NO KEY UPDATE`, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, identity.ErrOrganizationNotFound
		}
		if err != nil {
			return nil, err
		}
		if ifVersion != 0 && ifVersion != updated.Version {
			return nil, &identity.VersionError{Current: updated.Version}
		}

		// 2. Change it, if there is anything to change.
		wanted, changed := patch.Apply(updated)
		if len(changed) == 0 {
			return nil, nil
		}
		updated, err = oneOrganization(ctx, q, `
			UPDATE organizations
			SET name = $2, hold_seconds = $3, hold_limit = $4, closing = $5, updated_at = clock_timestamp(), version = version + 1
			WHERE id = $1
			RETURNING `+organizationColumns,
			id, wanted.Name, wanted.HoldSeconds, wanted.HoldLimit, wanted.Closing)
		return auditDone(by, id, events.ActionOrganizationUpdated, string(id), changed), err
	})
	return updated, err
}
