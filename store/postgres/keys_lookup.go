package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"allocator/identity"
)

// LookUpKey implements identity.KeyStore. The one read that does not name an organization: the key tells which it is.
func (s *Keys) LookUpKey(ctx context.Context, id identity.KeyID) (identity.KeyRecord, error) {
	uid, ok := parseID(keyIDPrefix, string(id))
	if !ok {
		return identity.KeyRecord{}, identity.ErrKeyNotFound
	}
	var (
		record identity.KeyRecord
		hash   []byte
		err    error
	)
	record.Key, err = scanKey(s.pool.QueryRow(ctx,
		`SELECT `+keyColumns+`, secret_hash, clock_timestamp() FROM api_keys WHERE id = $1`, uid), &hash, &record.AsOf)
	if errors.Is(err, pgx.ErrNoRows) {
		return identity.KeyRecord{}, identity.ErrKeyNotFound
	}
	copy(record.Hash[:], hash) // 32 bytes, by a constraint
	return record, wrapped("look up the key", err)
}

// TouchKeys implements identity.KeyStore. Two replicas that touch the same keys at once do not wait for each other: one
// of them is enough.
func (s *Keys) TouchKeys(ctx context.Context, ids []identity.KeyID) error {
	var uids []uuid.UUID
	for _, id := range ids {
		if uid, ok := parseID(keyIDPrefix, string(id)); ok {
			uids = append(uids, uid)
		}
	}
	_, err := s.pool.Exec(ctx, `
		UPDATE api_keys SET last_used_at = clock_timestamp()
		WHERE id IN (
			SELECT id FROM api_keys
			WHERE id = ANY($1) AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')
			FOR NO KEY UPDATE SKIP LOCKED)`, uids)
	return wrapped("record the last use of keys", err)
}
