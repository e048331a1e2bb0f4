package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"allocator/events"
	"allocator/featureflags"
)

// SetFlag implements featureflags.Store. Setting what is set already writes nothing.
func (s *Flags) SetFlag(ctx context.Context, by featureflags.By, key string, percent int) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			INSERT INTO flags (key, percent, updated_by_kind, updated_by_id) VALUES ($1, $2, $3, $4)
			ON CONFLICT (key) DO UPDATE SET percent = excluded.percent, updated_at = clock_timestamp(),
				updated_by_kind = excluded.updated_by_kind, updated_by_id = excluded.updated_by_id
			WHERE flags.percent <> excluded.percent`,
			key, percent, by.ActorKind, by.ActorID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return insertAudit(ctx, tx, auditFlag(by, "", events.ActionFlagSet, key,
			map[string]string{"percent": strconv.Itoa(percent)}))
	})
	return wrapped("set the switch", err)
}

// SetFlagOverride implements featureflags.Store. Setting what is set already writes nothing.
func (s *Flags) SetFlagOverride(
	ctx context.Context, by featureflags.By, key, organizationID string, enabled bool,
) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		exists, err := organizationExists(ctx, tx, organizationID)
		if err != nil {
			return err
		}
		if !exists {
			return featureflags.ErrOrganizationNotFound
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO flag_overrides (organization_id, key, enabled, updated_by_kind, updated_by_id)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (organization_id, key) DO UPDATE SET enabled = excluded.enabled, updated_at = clock_timestamp(),
				updated_by_kind = excluded.updated_by_kind, updated_by_id = excluded.updated_by_id
			WHERE flag_overrides.enabled <> excluded.enabled`,
			organizationID, key, enabled, by.ActorKind, by.ActorID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return insertAudit(ctx, tx, auditFlag(by, organizationID, events.ActionFlagOverrideSet, key,
			map[string]string{"enabled": strconv.FormatBool(enabled)}))
	})
	return wrapped("set the organization's switch", err)
}

// DeleteFlagOverride implements featureflags.Store.
func (s *Flags) DeleteFlagOverride(ctx context.Context, by featureflags.By, key, organizationID string) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		exists, err := organizationExists(ctx, tx, organizationID)
		if err != nil {
			return err
		}
		if !exists {
			return featureflags.ErrOverrideNotFound
		}
		tag, err := tx.Exec(ctx, `DELETE FROM flag_overrides WHERE organization_id = $1 AND key = $2`, organizationID, key)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return featureflags.ErrOverrideNotFound
		}
		return insertAudit(ctx, tx, auditFlag(by, organizationID, events.ActionFlagOverrideDeleted, key, nil))
	})
	return wrapped("delete the organization's switch", err)
}
