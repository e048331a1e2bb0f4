package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/lease"
	"allocator/reservation"
)

// Leases keeps edit leases. It implements lease.Store and lease.Reader. The database's clock alone says when a lease is
// over.
type Leases struct {
	q      querier
	begin  func(ctx context.Context) (pgx.Tx, error)
	inside bool // an application's own transaction: claims are savepoints, and its commit is not ours
}

var (
	_ lease.Store  = (*Leases)(nil)
	_ lease.Reader = (*Leases)(nil)
)

// NewLeases makes the store.
func NewLeases(pool *pgxpool.Pool) *Leases {
	return &Leases{q: pool, begin: func(ctx context.Context) (pgx.Tx, error) { return pool.BeginTx(ctx, readCommitted) }}
}

// LeasesIn makes the store within a transaction of the application, which should be READ COMMITTED. A claim runs in a
// savepoint, and the resource stays taken until that transaction is over.
func LeasesIn(tx pgx.Tx) *Leases { return &Leases{q: tx, begin: tx.Begin, inside: true} }

// The first statement of a claim takes the resource's row, so that whoever comes second waits here, before it has looked at
// anything.
const claimResourceSQL = `INSERT INTO lease_resources AS r (organization_id, resource) VALUES ($1, $2)
	ON CONFLICT (organization_id, resource) DO UPDATE SET claimed_at = clock_timestamp()`

// Claim implements lease.Store.
func (s *Leases) Claim(
	ctx context.Context, organization, resource string, fn func(ctx context.Context, tx lease.Tx) error,
) error {
	return leaseFailed("claim a lease", s.run(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, claimResourceSQL, organization, resource); err != nil {
			return err
		}
		return fn(ctx, &leasing{tx: tx, organization: organization, resource: resource})
	}))
}

// Change implements lease.Store. A claim writes its rows in another order, so that the two can meet in a deadlock.
func (s *Leases) Change(
	ctx context.Context, organization, resource string, fn func(ctx context.Context, tx lease.Tx) error,
) error {
	for repeats := 0; ; repeats++ {
		err := s.run(ctx, func(tx pgx.Tx) error {
			return fn(ctx, &leasing{tx: tx, organization: organization, resource: resource})
		})
		// The locks of a transaction around a savepoint stay, so that only its owner can repeat it.
		if s.inside || clashOf(err) != clashRepeat || errors.Is(err, reservation.ErrOutcomeUnknown) || repeats == maxRepeats {
			return wrapped("give a lease back", err)
		}
		if err := pause(ctx, repeats); err != nil {
			return err
		}
	}
}

// run runs fn in a transaction or a savepoint of its own.
func (s *Leases) run(ctx context.Context, fn func(tx pgx.Tx) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { // also when fn panics
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = tx.Rollback(back) // nothing after a commit; the pool destroys a connection that is still in a transaction
	}()
	if err := fn(tx); err != nil {
		return err
	}
	err = tx.Commit(ctx)
	if err != nil && !s.inside && commitMayStand(err) {
		return errors.Join(reservation.ErrOutcomeUnknown, err)
	}
	return err
}

// leaseFailed says of a claim that lost a race that it may be tried again, and of a database that is away that it is: nobody
// may take that for a lease that is held.
func leaseFailed(doing string, err error) error {
	switch clashOf(err) {
	case clashRepeat, clashLocked:
		return fmt.Errorf("%s: %w (%w)", doing, lease.ErrLostRace, err)
	default:
		if errors.Is(err, reservation.ErrOutcomeUnknown) {
			return err // translating the cause would say beside it that nothing was changed
		}
		return wrapped(doing, err)
	}
}

// Standing implements lease.Reader.
func (s *Leases) Standing(ctx context.Context, organization, resource string) (lease.Standing, error) {
	seen, err := standing(ctx, s.q, organization, []string{resource})
	return seen, wrapped("read who edits a resource", err)
}

// standingSQL reads the clock in the statement that reads the leases, and says it once and also without any lease. Whoever
// edits asks for it every few seconds: it is planned once, which for one resource gives the least work when it is named by
// itself, and nothing is sorted.
const (
	standingSQL = `SELECT clock_timestamp(), '', '', '', '', '', NULL::timestamptz, CAST(NULL AS timestamptz), 0::bigint UNION ALL
	SELECT NULL, l.resource, l.part, l.holder_id, l.holder_name, l.credential, l.acquired_at, l.expires_at, l.version
	FROM leases l WHERE l.organization_id = $1 AND l.resource `
	standingOneSQL  = standingSQL + `= $2`
	standingSomeSQL = standingSQL + `= ANY ($2)`
)

// standing returns the leases by resource and part.
func standing(ctx context.Context, q querier, organization string, resources []string) (seen lease.Standing, err error) {
	var rows pgx.Rows
	if len(resources) == 1 {
		rows, err = q.Query(ctx, standingOneSQL, organization, resources[0])
	} else {
		rows, err = q.Query(ctx, standingSomeSQL, organization, resources)
	}
	if err != nil {
		return seen, err
	}
	defer rows.Close()
	for r := newLeaseRow(); rows.Next(); {
		if err := rows.Scan(r.columns...); err != nil {
			return seen, err
		}
		if r.now.Valid {
			seen.Now = r.now.Time.UTC()
			continue
		}
		seen.Leases = append(seen.Leases, r.lease())
	}
	slices.SortFunc(seen.Leases, func(a, b lease.Lease) int {
		return cmp.Or(cmp.Compare(a.Key.Resource, b.Key.Resource), cmp.Compare(a.Key.Part, b.Key.Part))
	})
	return seen, rows.Err()
}

// leaseRow reads rows of standingSQL. Many of them repeat the same resource, holder and key.
type leaseRow struct {
	pool textPool

	now, acquired, expires   pgtype.Timestamptz
	resource, id, credential pooledText
	part, name               optionalText
	version                  int64

	columns []any
}

func newLeaseRow() *leaseRow {
	r := &leaseRow{}
	for _, text := range []*pooledText{&r.resource, &r.id, &r.credential} {
		text.pool = &r.pool
	}
	r.columns = []any{&r.now, &r.resource, &r.part, &r.id, &r.name, &r.credential, &r.acquired, &r.expires, &r.version}
	return r
}

func (r *leaseRow) lease() lease.Lease {
	return lease.Lease{
		Key: lease.Key{Resource: r.resource.text, Part: string(r.part)}, Holder: lease.Holder{ID: r.id.text, Name: string(r.name)},
		Credential: r.credential.text, AcquiredAt: r.acquired.Time.UTC(), ExpiresAt: r.expires.Time.UTC(), Version: r.version,
	}
}

// leaseKept is how long the row of a lease that ran out is kept, so that its holder's heartbeat can keep what nobody took.
const leaseKept = `interval '1 day'`

const purgeLeasesSQL = `
	WITH gone AS (
		DELETE FROM leases WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM leases WHERE expires_at < clock_timestamp() - ` + leaseKept + ` FOR UPDATE SKIP LOCKED LIMIT 10000))
		RETURNING 1
	), unused AS (
		DELETE FROM lease_resources WHERE ctid = ANY (ARRAY(
			SELECT r.ctid FROM lease_resources r WHERE claimed_at < clock_timestamp() - ` + leaseKept + `
				AND NOT EXISTS (SELECT FROM leases l WHERE l.organization_id = r.organization_id AND l.resource = r.resource)
			FOR UPDATE SKIP LOCKED LIMIT 10000))
	)
	SELECT count(*) FROM gone`

// Purge implements lease.Store: it deletes at most 10,000 leases that ran out more than a day ago, and the rows of resources
// that nobody has claimed for a day. It passes over what is locked.
func (s *Leases) Purge(ctx context.Context) (int64, error) {
	var gone int64
	err := s.q.QueryRow(ctx, purgeLeasesSQL).Scan(&gone)
	return gone, wrapped("purge leases", err)
}
