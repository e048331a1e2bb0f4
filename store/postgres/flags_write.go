package postgres

import (
	"context"
	"strconv"

	"allocator/events"
	"allocator/featureflags"
)

// SetFlag implements featureflags.Store. Setting what is set already writes nothing.
func (s *Flags) SetFlag(ctx context.Context, by featureflags.By, key string, percent int) error {
	return audited(ctx, s.pool, "set the switch", func(ctx context.Context, q querier) (*events.AuditEntry, error) {
		tag, err := q.Exec(ctx, `
			INSERT INTO flags (key, percent, updated_by_kind, updated_by_id) VALUES ($1, $2, $3, $4)
			ON CONFLICT (key) DO UPDATE SET percent = excluded.percent, updated_at = clock_timestamp(),
				updated_by_kind = excluded.updated_by_kind, updated_by_id = excluded.updated_by_id
			WHERE flags.percent <> excluded.percent`,
			key, percent, by.ActorKind, by.ActorID)
		if err != nil || tag.RowsAffected() == 0 {
			return nil, err
		}
		return auditFlag(by, "", events.ActionFlagSet, key, map[string]string{"percent": strconv.Itoa(percent)}), nil
	})
}

// SetFlagOverride implements featureflags.Store. Setting what is set already writes nothing.
func (s *Flags) SetFlagOverride(
	ctx context.Context, by featureflags.By, key, organizationID string, enabled bool,
) error {
	return audited(ctx, s.pool, "set the organization's switch", func(ctx context.Context, q querier) (*events.AuditEntry, error) {
		exists, err := organizationExists(ctx, q, organizationID)
		if err != nil {
			return nil, err
		}
		if !exists {
			return nil, featureflags.ErrOrganizationNotFound
		}
		tag, err := q.Exec(ctx, `
			INSERT INTO flag_overrides (organization_id, key, enabled, updated_by_kind, updated_by_id)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (organization_id, key) DO UPDATE SET enabled = excluded.enabled, updated_at = clock_timestamp(),
				updated_by_kind = excluded.updated_by_kind, updated_by_id = excluded.updated_by_id
			WHERE flag_overrides.enabled <> excluded.enabled`,
			organizationID, key, enabled, by.ActorKind, by.ActorID)
		if err != nil || tag.RowsAffected() == 0 {
			return nil, err
		}
		return auditFlag(by, organizationID, events.ActionFlagOverrideSet, key,
			map[string]string{"enabled": strconv.FormatBool(enabled)}), nil
	})
}

// DeleteFlagOverride implements featureflags.Store.
func (s *Flags) DeleteFlagOverride(ctx context.Context, by featureflags.By, key, organizationID string) error {
	return audited(ctx, s.pool, "delete the organization's switch", func(ctx context.Context, q querier) (*events.AuditEntry, error) {
		exists, err := organizationExists(ctx, q, organizationID)
		if err != nil {
			return nil, err
		}
		if !exists {
			return nil, featureflags.ErrOverrideNotFound
		}
		tag, err := q.Exec(ctx, `DELETE FROM flag_overrides WHERE organization_id = $1 AND key = $2`, organizationID, key)
		if err != nil {
			return nil, err
		}
		if tag.RowsAffected() == 0 {
			return nil, featureflags.ErrOverrideNotFound
		}
		return auditFlag(by, organizationID, events.ActionFlagOverrideDeleted, key, nil), nil
	})
}
