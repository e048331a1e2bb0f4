package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/events"
	"allocator/identity"
)

const keyIDPrefix = "key_"

// Keys keeps API keys. It implements identity.KeyStore.
type Keys struct{ pool *pgxpool.Pool }

var _ identity.KeyStore = (*Keys)(nil)

// NewKeys makes the store.
func NewKeys(pool *pgxpool.Pool) *Keys { return &Keys{pool: pool} }

const keyColumns = `organization_id, id, name, scopes, created_at, created_by_kind, created_by_id, expires_at,
	last_used_at, revoked_at, revoked_by_kind, revoked_by_id`

// scanKey reads keyColumns and then whatever more the query gives.
func scanKey(row pgx.Row, more ...any) (identity.Key, error) {
	var (
		k             identity.Key
		id            uuid.UUID
		scopes        []identity.Scope
		revokedByKind *identity.ActorKind
		revokedByID   *string
	)
	columns := []any{
		&k.Organization, &id, &k.Name, &scopes, &k.CreatedAt, &k.CreatedBy.Kind, &k.CreatedBy.ID, &k.ExpiresAt,
		&k.LastUsedAt, &k.RevokedAt, &revokedByKind, &revokedByID,
	}
	if err := row.Scan(append(columns, more...)...); err != nil {
		return identity.Key{}, err
	}
	k.ID = identity.KeyID(formatID(keyIDPrefix, id))
	k.Scopes = identity.NewScopeSet(scopes...)
	k.CreatedAt, k.ExpiresAt, k.LastUsedAt, k.RevokedAt = k.CreatedAt.UTC(), inUTC(k.ExpiresAt), inUTC(k.LastUsedAt), inUTC(k.RevokedAt)
	if revokedByKind != nil && revokedByID != nil {
		k.RevokedBy = &identity.Actor{Kind: *revokedByKind, ID: *revokedByID}
	}
	return k, nil
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// CreateKey implements identity.KeyStore.
func (s *Keys) CreateKey(
	ctx context.Context, by identity.Caller, key identity.Key, hash identity.SecretHash,
) (created identity.Key, err error) {
	err = audited(ctx, s.pool, "create the key", func(ctx context.Context, q querier) (*events.AuditEntry, error) {
		created, err = scanKey(q.QueryRow(ctx, `
			INSERT INTO api_keys (organization_id, id, name, scopes, secret_hash, created_by_kind, created_by_id, expires_at)
			SELECT id, $2, $3, $4, $5, $6, $7, $8 FROM organizations WHERE id = $1
			RETURNING `+keyColumns,
			key.Organization, newID(), key.Name, key.Scopes.Names(), hash[:], key.CreatedBy.Kind, key.CreatedBy.ID, key.ExpiresAt))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, identity.ErrOrganizationNotFound
		}
		return auditDone(by, created.Organization, events.ActionKeyCreated, string(created.ID),
			map[string]string{"name": created.Name, "scopes": created.Scopes.String()}), err
	})
	return created, err
}

// Key implements identity.KeyStore.
func (s *Keys) Key(ctx context.Context, org identity.OrganizationID, id identity.KeyID) (identity.Key, error) {
	return readKey(ctx, s.pool, org, id)
}

func readKey(ctx context.Context, q querier, org identity.OrganizationID, id identity.KeyID) (identity.Key, error) {
	uid, ok := parseID(keyIDPrefix, string(id))
	if !ok {
		return identity.Key{}, identity.ErrKeyNotFound
	}
	key, err := scanKey(q.QueryRow(ctx,
		`SELECT `+keyColumns+` FROM api_keys WHERE organization_id = $1 AND id = $2`, org, uid))
	if errors.Is(err, pgx.ErrNoRows) {
		return identity.Key{}, identity.ErrKeyNotFound
	}
	return key, wrapped("read the key", err)
}

// Keys implements identity.KeyStore.
func (s *Keys) Keys(
	ctx context.Context, org identity.OrganizationID, after identity.KeyID, limit int,
) ([]identity.Key, error) {
	var uid uuid.UUID
	if after != "" {
		var ok bool
		if uid, ok = parseID(keyIDPrefix, string(after)); !ok {
			return nil, identity.ErrKeyNotFound
		}
	}
	rows, err := s.pool.Query(ctx,
		`SELECT `+keyColumns+` FROM api_keys WHERE organization_id = $1 AND id > $2 ORDER BY id LIMIT $3`, org, uid, limit)
	if err != nil {
		return nil, wrapped("list keys", err)
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (identity.Key, error) { return scanKey(row) })
	return keys, wrapped("list keys", err)
}

// RevokeKey implements identity.KeyStore.
func (s *Keys) RevokeKey(
	ctx context.Context, by identity.Caller, org identity.OrganizationID, id identity.KeyID,
) (revoked identity.Key, err error) {
	uid, ok := parseID(keyIDPrefix, string(id))
	if !ok {
		return identity.Key{}, identity.ErrKeyNotFound
	}
	err = audited(ctx, s.pool, "revoke the key", func(ctx context.Context, q querier) (*events.AuditEntry, error) {
		revoked, err = scanKey(q.QueryRow(ctx, `
			UPDATE api_keys SET revoked_at = clock_timestamp(), revoked_by_kind = $3, revoked_by_id = $4
			WHERE organization_id = $1 AND id = $2 AND revoked_at IS NULL
			RETURNING `+keyColumns,
			org, uid, by.Actor.Kind, by.Actor.ID))
		if errors.Is(err, pgx.ErrNoRows) { // revoked before, or not there
			revoked, err = readKey(ctx, q, org, id)
			return nil, err
		}
		return auditDone(by, org, events.ActionKeyRevoked, string(id), map[string]string{"name": revoked.Name}), err
	})
	return revoked, err
}
