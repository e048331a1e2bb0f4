package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"allocator/locking"
)

var _ locking.KeyStore = (*Locks)(nil)

// lockMatches holds the wishes about a token against a lock; what is not wished for is NULL. They are the four parameters
// from the first on. The hash of a token that a person typed in is not known, so it neither equals nor differs.
func lockMatches(first int) string {
	return fmt.Sprintf(`($%d::bytea IS NULL OR token = $%[1]d) AND ($%d::bytea IS NULL OR token <> $%[2]d)
		AND ($%d::bigint IS NULL OR digest = $%[3]d) AND ($%d::bigint IS NULL OR digest <> $%[4]d)`, first, first+1, first+2, first+3)
}

// fenceOfPut: whoever goes on with its own token goes on with its fence; everything else is a new grant.
const fenceOfPut = `CASE WHEN had.expires_at > clock_timestamp() AND had.token = $3 THEN had.fence ELSE nextval('lock_fences') END`

var (
	// heldLockSQL takes the row before it looks at the clock, or a wait for the row would be time that nobody counted.
	heldLockSQL = `
		WITH mine AS MATERIALIZED (
			SELECT organization_id, key, token, digest, expires_at FROM locks WHERE organization_id = $1 AND key = $2 FOR UPDATE
		), held AS MATERIALIZED (
			SELECT organization_id, key, token, expires_at, coalesce(` + lockMatches(7) + `, false) AS matches FROM mine WHERE expires_at > clock_timestamp()
		), done AS (`

	// putOnHeldLockSQL changes a lock that somebody has, if it matches.
	putOnHeldLockSQL = heldLockSQL + `
			UPDATE locks had SET token = $3, digest = $5, fence = ` + fenceOfPut + `,
				expires_at = coalesce(` + until + `, held.expires_at), changed_at = clock_timestamp()
			FROM held WHERE had.organization_id = held.organization_id AND had.key = held.key AND held.matches
			RETURNING 1
		)
		SELECT EXISTS (SELECT FROM done), (SELECT token FROM held), true`

	// putLockSQL also takes a free lock. A row that came between the look at it and the insertion is not touched, since
	// nobody has seen what was in it: the last column says that this has to be asked again.
	putLockSQL = heldLockSQL + `
			INSERT INTO locks AS had (organization_id, key, token, digest, fence, expires_at)
			SELECT $1, $2, $3, $5, nextval('lock_fences'), ` + until + `
			WHERE NOT EXISTS (SELECT FROM held WHERE NOT matches)
			ON CONFLICT (organization_id, key) DO UPDATE
			SET token = $3, digest = $5, fence = ` + fenceOfPut + `, expires_at = ` + until + `, changed_at = clock_timestamp()
			WHERE EXISTS (SELECT FROM mine)
			RETURNING 1
		)
		SELECT EXISTS (SELECT FROM done), (SELECT token FROM held),
			EXISTS (SELECT FROM done) OR EXISTS (SELECT FROM held WHERE NOT matches)`

	prolongLockSQL = `
		WITH mine AS MATERIALIZED (
			SELECT organization_id, key, expires_at FROM locks WHERE organization_id = $1 AND key = $2 FOR UPDATE
		), wanted AS MATERIALIZED (
			SELECT organization_id, key, expires_at, coalesce('epoch'::timestamptz + $4::bigint * interval '1 millisecond',
				clock_timestamp() + $3::bigint * interval '1 millisecond') AS later
			FROM mine WHERE expires_at > clock_timestamp()
		)
		UPDATE locks SET expires_at = later, changed_at = clock_timestamp() FROM wanted
		WHERE locks.organization_id = wanted.organization_id AND locks.key = wanted.key
			AND CASE $5::int WHEN 1 THEN later > wanted.expires_at WHEN 2 THEN later < wanted.expires_at ELSE true END`

	lookAtLockSQL = `
		SELECT token, extract(epoch FROM expires_at - clock_timestamp())::float8 FROM locks
		WHERE organization_id = $1 AND key = $2 AND expires_at > clock_timestamp()`

	countLocksSQL = `
		SELECT count(*) FROM unnest($2::text[]) AS asked (name)
		JOIN locks ON organization_id = $1 AND key = asked.name AND expires_at > clock_timestamp()`

	removeLockSQL = `
		UPDATE locks SET token = '', digest = NULL, expires_at = '-infinity', changed_at = clock_timestamp()
		WHERE organization_id = $1 AND key = $2 AND expires_at > clock_timestamp()
			AND ` + lockMatches(3)

	// breakLocksSQL takes the rows in one order, so that two who break the same locks do not wait for each other in a ring.
	breakLocksSQL = `
		WITH broken AS MATERIALIZED (
			SELECT organization_id, key FROM locks
			WHERE organization_id = $1 AND key = ANY ($2::text[]) AND expires_at > clock_timestamp() ORDER BY key FOR UPDATE
		)
		UPDATE locks SET token = '', digest = NULL, expires_at = '-infinity', changed_at = clock_timestamp() FROM broken
		WHERE locks.organization_id = broken.organization_id AND locks.key = broken.key`
)

// putTries bounds how often a Put asks again after it met a row that nobody had seen.
const putTries = 5

// Put implements locking.KeyStore.
func (s *Locks) Put(ctx context.Context, organizationID string, put locking.Put) (locking.Placed, error) {
	for range putTries {
		placed, settled, err := s.putOnce(ctx, organizationID, put)
		if err != nil || settled {
			return placed, err
		}
	}
	return locking.Placed{}, errors.New("others change this lock without a pause, and nothing was changed: try again shortly")
}

// putOnce asks once; settled is false if somebody else came in between and nothing was changed.
func (s *Locks) putOnce(ctx context.Context, organizationID string, put locking.Put) (placed locking.Placed, settled bool, err error) {
	var before []byte
	if put.If == locking.Free {
		var asked locking.Asked
		asked, before, err = s.acquire(ctx, organizationID, put.Key, put.Token, put.Until)
		placed.Done, settled = asked.Granted, asked.Granted || !put.Before || before != nil
	} else {
		sql := putLockSQL
		if put.If == locking.Held {
			sql = putOnHeldLockSQL
		}
		after, at := untilArgs(put.Until)
		args := append([]any{organizationID, put.Key, []byte(put.Token), after, digestOf(put.Token), at}, matchArgs(put.Match)...)
		err = lockFailed("set a lock", s.pool.QueryRow(ctx, sql, args...).Scan(&placed.Done, &before, &settled))
	}
	if put.Before && before != nil {
		token := string(before)
		placed.Before = &token
	}
	return placed, settled, err
}

// Look implements locking.KeyStore.
func (s *Locks) Look(ctx context.Context, organizationID, key string) (*locking.Entry, error) {
	var token []byte
	var left float64
	err := s.pool.QueryRow(ctx, lookAtLockSQL, organizationID, key).Scan(&token, &left)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, lockFailed("look at a lock", err)
	}
	return &locking.Entry{Token: string(token), Left: max(0, time.Duration(left*float64(time.Second)))}, nil
}

// Count implements locking.KeyStore.
func (s *Locks) Count(ctx context.Context, organizationID string, keys []string) (n int64, err error) {
	err = s.pool.QueryRow(ctx, countLocksSQL, organizationID, keys).Scan(&n)
	return n, lockFailed("count locks", err)
}

// Prolong implements locking.KeyStore.
func (s *Locks) Prolong(
	ctx context.Context, organizationID, key string, until locking.Until, later locking.Later,
) (bool, error) {
	after, at := untilArgs(until)
	n, err := s.exec(ctx, "change the time of a lock", prolongLockSQL, organizationID, key, after, at, int(later))
	return n > 0, err
}

// Remove implements locking.KeyStore.
func (s *Locks) Remove(ctx context.Context, organizationID, key string, match locking.Match) (bool, error) {
	args := append([]any{organizationID, key}, matchArgs(match)...)
	n, err := s.exec(ctx, "remove a lock", removeLockSQL, args...)
	return n > 0, err
}

// Break implements locking.KeyStore.
func (s *Locks) Break(ctx context.Context, organizationID string, keys []string) (int64, error) {
	return s.exec(ctx, "break locks", breakLocksSQL, organizationID, keys)
}

func (s *Locks) exec(ctx context.Context, doing, sql string, args ...any) (int64, error) {
	tag, err := s.pool.Exec(ctx, sql, args...)
	return tag.RowsAffected(), lockFailed(doing, err)
}

// untilArgs are milliseconds from now, or since 1970, or neither.
func untilArgs(until locking.Until) (after, at *int64) {
	switch {
	case !until.At.IsZero():
		instant := until.At.UnixMilli()
		return nil, &instant
	case until.After != 0:
		span := until.After.Milliseconds()
		return &span, nil
	}
	return nil, nil
}

func matchArgs(match locking.Match) []any {
	return []any{bytesOf(match.Token), bytesOf(match.NotToken), signed(match.Digest), signed(match.NotDigest)}
}

func bytesOf(token *string) []byte {
	if token == nil {
		return nil
	}
	return append([]byte{}, *token...) // an empty token is a token
}

// signed keeps the 64 bits of a digest, which SQL has no unsigned type for.
func signed(digest *uint64) *int64 {
	if digest == nil {
		return nil
	}
	bits := int64(*digest) //nolint:gosec // the bits are meant, not the number
	return &bits
}

func digestOf(token string) int64 {
	digest := locking.Digest(token)
	return *signed(&digest)
}
