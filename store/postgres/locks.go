package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/identity"
	"allocator/locking"
	"allocator/reservation"
)

// Locks keeps the locks of other programs. It implements locking.GrantStore: every operation is one statement, and the
// database's clock alone says when a lock is over.
type Locks struct{ pool *pgxpool.Pool }

var _ locking.GrantStore = (*Locks)(nil)

// NewLocks makes the store.
func NewLocks(pool *pgxpool.Pool) *Locks { return &Locks{pool: pool} }

// lockFenceKept is how long a dead lock's row is kept at least: far longer than any statement may take (see locks in the
// migrations).
const lockFenceKept = `interval '1 day'`

// lockPurgeBatch keeps each statement of a purge short.
const lockPurgeBatch = 1000

const (
	fromNow = `clock_timestamp() + $4::bigint * interval '1 millisecond'`

	// until is an instant in milliseconds since 1970 if there is one, and else fromNow.
	until = `coalesce('epoch'::timestamptz + $6::bigint * interval '1 millisecond', ` + fromNow + `)`

	// acquireLockSQL looks before it inserts, so that asking for a live lock neither writes nor waits for anybody. Two who
	// meet at a dead or a new one are put in order by the primary key: the second looks again under the row's lock, with a
	// clock read after the wait. Its fence is drawn there as well.
	acquireLockSQL = `
		WITH taken AS (
			INSERT INTO locks AS held (organization_id, key, token, digest, fence, expires_at)
			SELECT $1, $2, $3, $5, nextval('lock_fences'), ` + until + `
			WHERE NOT EXISTS (SELECT FROM locks WHERE organization_id = $1 AND key = $2 AND expires_at > clock_timestamp())
			ON CONFLICT (organization_id, key) DO UPDATE
			SET token = excluded.token, digest = excluded.digest, fence = nextval('lock_fences'), expires_at = ` + until + `,
				changed_at = clock_timestamp()
			WHERE held.expires_at <= clock_timestamp()
			RETURNING fence, expires_at
		)
		SELECT true, fence, expires_at, 0::float8, NULL::bytea FROM taken
		UNION ALL
		SELECT false, 0, NULL, coalesce(greatest(0, extract(epoch FROM had.expires_at - clock_timestamp())), 0),
			CASE WHEN had.expires_at > clock_timestamp() THEN had.token END
		FROM (VALUES (1)) refused
		LEFT JOIN locks had ON organization_id = $1 AND key = $2 AND isfinite(expires_at)
		WHERE NOT EXISTS (SELECT FROM taken)`

	// renewLockSQL takes the row before it looks at the clock, or a wait for the row would be time that nobody counted.
	renewLockSQL = `
		WITH mine AS MATERIALIZED (
			SELECT organization_id, key, expires_at FROM locks WHERE organization_id = $1 AND key = $2 AND token = $3 FOR UPDATE
		)
		UPDATE locks SET expires_at = ` + fromNow + `, changed_at = clock_timestamp() FROM mine
		WHERE locks.organization_id = mine.organization_id AND locks.key = mine.key AND mine.expires_at > clock_timestamp()
		RETURNING locks.fence, locks.expires_at`

	releaseLockSQL = `
		UPDATE locks SET token = '', digest = NULL, expires_at = '-infinity', changed_at = clock_timestamp()
		WHERE organization_id = $1 AND key = $2 AND token = $3 AND expires_at > clock_timestamp()`

	// fenceSQL waits for whoever is being granted the lock, and keeps the next one waiting until the transaction ends.
	// A statement that only read would see the fence of a moment ago.
	fenceSQL = `SELECT fence FROM locks WHERE organization_id = $1 AND key = $2 FOR SHARE`

	purgeLocksSQL = `
		DELETE FROM locks WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM locks WHERE greatest(expires_at, changed_at) < clock_timestamp() - ` + lockFenceKept + `
			FOR UPDATE SKIP LOCKED LIMIT $1))`
)

// Acquire implements locking.GrantStore.
func (s *Locks) Acquire(ctx context.Context, organizationID, key, token string, ttl time.Duration) (locking.Asked, error) {
	asked, _, err := s.acquire(ctx, organizationID, key, token, locking.Until{After: ttl})
	return asked, err
}

// acquire also tells the token of whoever has the lock; nil if that was not seen.
func (s *Locks) acquire(
	ctx context.Context, organizationID, key, token string, until locking.Until,
) (asked locking.Asked, holder []byte, err error) {
	var expires *time.Time
	var left float64
	after, at := untilArgs(until)
	err = s.pool.QueryRow(ctx, acquireLockSQL, organizationID, key, []byte(token), after, digestOf(token), at).
		Scan(&asked.Granted, &asked.Fence, &expires, &left, &holder)
	if err != nil {
		return locking.Asked{}, nil, lockFailed("take a lock", err)
	}
	if asked.Granted {
		asked.ExpiresAt = expires.UTC()
	}
	asked.Left = time.Duration(left * float64(time.Second))
	return asked, holder, nil
}

// Renew implements locking.GrantStore.
func (s *Locks) Renew(ctx context.Context, organizationID, key, token string, ttl time.Duration) (locking.Grant, error) {
	grant := locking.Grant{Key: key, Token: token}
	err := s.pool.QueryRow(ctx, renewLockSQL, organizationID, key, []byte(token), ttl.Milliseconds()).Scan(&grant.Fence, &grant.ExpiresAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return locking.Grant{}, locking.ErrNotOwner
	}
	if err != nil {
		return locking.Grant{}, lockFailed("renew a lock", err)
	}
	grant.ExpiresAt = grant.ExpiresAt.UTC()
	return grant, nil
}

// Release implements locking.GrantStore.
func (s *Locks) Release(ctx context.Context, organizationID, key, token string) error {
	tag, err := s.pool.Exec(ctx, releaseLockSQL, organizationID, key, []byte(token))
	switch {
	case err != nil:
		return lockFailed("release a lock", err)
	case tag.RowsAffected() == 0:
		return locking.ErrNotOwner
	}
	return nil
}

// CheckFence implements reservation.Tx. A lock whose row is gone was over for a day at least, and others may have had it
// since: no fence of it is known to be the newest.
func (c *changing) CheckFence(ctx context.Context, org identity.OrganizationID, proof reservation.LockProof) error {
	var newest int64
	err := c.send(ctx, step{sql: fenceSQL, args: []any{org, proof.Key}, read: oneRow(new(bool), func(row pgx.Rows) error {
		return row.Scan(&newest)
	})})
	if err == nil && newest != proof.Fence {
		err = reservation.ErrStaleFence
	}
	return err
}

// Purge deletes rows of locks that have been over for a day, a few at once, and returns how many there were. Nothing but
// the size of the table depends on it.
func (s *Locks) Purge(ctx context.Context) (int64, error) { return s.purge(ctx, lockPurgeBatch) }

func (s *Locks) purge(ctx context.Context, most int) (int64, error) {
	tag, err := s.pool.Exec(ctx, purgeLocksSQL, most)
	return tag.RowsAffected(), wrapped("purge dead locks", err)
}

// lockFailed says in the words of locks that the database is away: nobody may take that for a lock that is held.
func lockFailed(doing string, err error) error {
	err = wrapped(doing, err)
	if errors.Is(err, reservation.ErrUnavailable) {
		return fmt.Errorf("%w: %w", locking.ErrBackend, err)
	}
	return err
}
