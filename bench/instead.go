package bench

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What somebody might do instead of using the product, on the same tables. None of these knows keys, order lines,
// reasons or what a refusal means; they choose by the same requirements and the same ranking, and equals in an order
// of each request's own, which is kinder to them than what is usually written.

// choosing lists servers that fit and that nobody has, best first.
func choosing(c *class) string {
	return `SELECT s.id FROM servers s WHERE s.organization_id = $1 AND s.state = 'ready' AND ` + c.sql + `
		AND NOT EXISTS (SELECT FROM occupancy o WHERE o.organization_id = s.organization_id AND o.server_id = s.id)
		ORDER BY s.size, s.price_amount, hashtextextended(s.id::text, hashtextextended($2, 0))`
}

// holdOneSQL holds a server with as little as the limit writes.
const holdOneSQL = `INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at,
		max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
	VALUES ($1, $2, $3, $4, '1', 'key', clock_timestamp() + interval '1 day', clock_timestamp() + interval '1 day',
		$4, '\x00', 'k', '{}', '{}', '{"v": 1}', $2)`

const lockOneSQL = `SELECT FROM servers WHERE organization_id = $1 AND id = $2 FOR UPDATE SKIP LOCKED`

// maxCandidates is how many servers the alternatives look at, as the product does.
const maxCandidates = 25

// maxTries is how often a serialization failure is tried again.
const maxTries = 20

// byHand is a contender that holds a server by a way of its own.
func (w *world) byHand(name string, hold func(ctx context.Context, o order) (bool, error)) *contender {
	var wanted []order
	return &contender{
		name: name, most: w.most(),
		prepare: func(_ context.Context, round string) error {
			wanted = w.mixed(round)
			return nil
		},
		do: func(ctx context.Context, i int) (bool, error) { return hold(ctx, wanted[i]) },
	}
}

// patiently tries again when somebody else was faster, as long as there are candidates.
func patiently(ctx context.Context, try func(ctx context.Context) (bool, error)) (bool, error) {
	for range maxTries {
		if held, err := try(ctx); !clash(err) {
			return held && err == nil, err
		}
	}
	return false, nil
}

// lockedSet locks everything that fits and takes the first of it.
func (w *world) lockedSet() *contender {
	return w.byHand("locked-set", func(ctx context.Context, o order) (bool, error) {
		return patiently(ctx, func(ctx context.Context) (held bool, err error) {
			err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				rows, err := tx.Query(ctx, choosing(o.class)+` FOR UPDATE OF s SKIP LOCKED`, org, o.name)
				if err != nil {
					return err
				}
				ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
				if held = len(ids) > 0; err != nil || !held {
					return err
				}
				_, err = tx.Exec(ctx, holdOneSQL, org, uuid.Must(uuid.NewV7()), ids[0], o.name)
				return err
			})
			return held, err
		})
	})
}

// sqlList chooses by SQL and locks one candidate after the other.
func (w *world) sqlList() *contender {
	return w.byHand("sql-list", func(ctx context.Context, o order) (bool, error) {
		return patiently(ctx, func(ctx context.Context) (held bool, err error) {
			err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				ids, err := w.candidates(ctx, tx, o)
				for _, id := range ids {
					if held, err = lockAndHold(ctx, tx, id, o); held || err != nil {
						return err
					}
				}
				return err
			})
			return held, err
		})
	})
}

func lockAndHold(ctx context.Context, tx pgx.Tx, id uuid.UUID, o order) (bool, error) {
	tag, err := tx.Exec(ctx, lockOneSQL, org, id)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	_, err = tx.Exec(ctx, holdOneSQL, org, uuid.Must(uuid.NewV7()), id, o.name)
	return err == nil, err
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (w *world) candidates(ctx context.Context, q querier, o order) ([]uuid.UUID, error) {
	rows, err := q.Query(ctx, choosing(o.class)+` LIMIT $3`, org, o.name, maxCandidates)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// serializable locks nothing, and tries again when the database finds that somebody else was in the way.
func (w *world) serializable() *contender {
	return w.byHand("serializable", func(ctx context.Context, o order) (bool, error) {
		return patiently(ctx, func(ctx context.Context) (held bool, err error) {
			err = pgx.BeginTxFunc(ctx, w.pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
				ids, err := w.candidates(ctx, tx, o)
				if held = len(ids) > 0; err != nil || !held {
					return err
				}
				_, err = tx.Exec(ctx, holdOneSQL, org, uuid.Must(uuid.NewV7()), ids[0], o.name)
				return err
			})
			return held, err
		})
	})
}

// clash tells whether somebody else was faster.
func clash(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == pgerrcode.SerializationFailure || refused.Code == pgerrcode.DeadlockDetected ||
		refused.Code == pgerrcode.UniqueViolation)
}
