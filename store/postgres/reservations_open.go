package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// Allocations makes reservations and keeps decisions. It implements allocation.Store.
type Allocations struct {
	pool       *pgxpool.Pool
	lists      *listCache
	statements *statements
	feedPage   int // servers in a page of Everything
	maxNews    int // rows of each kind in one read of News
}

var _ allocation.Store = (*Allocations)(nil)

// NewAllocations makes the store.
func NewAllocations(pool *pgxpool.Pool) *Allocations {
	return &Allocations{pool: pool, lists: &listCache{}, statements: &statements{}, feedPage: feedPage, maxNews: maxNews}
}

// InTx implements allocation.Store.
func (a *Allocations) InTx(ctx context.Context, fn func(ctx context.Context, tx allocation.Tx) error) error {
	var r *reserving
	err := inTx(ctx, a.pool, func(ctx context.Context, t *tx) error {
		r = &reserving{tx: t, lists: a.lists, maxNews: a.maxNews}
		return fn(ctx, r)
	})
	if err == nil {
		a.lists.remember(r.written)
	}
	return err
}

// reserving is the transaction of one walk. It implements allocation.Tx.
type reserving struct {
	*tx
	lists   *listCache
	maxNews int
	written [][]byte // hashes of the lists that this transaction stores
}

const keySQL = `SELECT ` + reservationColumns + fromReservations + `
	WHERE r.organization_id = $1 AND r.idempotency_key = $2`

// The line's live or dead hold, or the converted reservation of its active binding.
const lineSQL = `SELECT ` + reservationColumns + `
	FROM occupancy o
	LEFT JOIN bindings b ON b.organization_id = o.organization_id AND b.id = o.binding_id
	JOIN reservations r ON r.organization_id = o.organization_id AND r.id = coalesce(o.reservation_id, b.reservation_id)
	WHERE o.organization_id = $1 AND o.order_id = $2 AND o.order_line = $3 AND o.unit = $4`

// A class prefix keeps keys and order lines apart; chr(31) cannot occur in any part. The line is tried only with the key
// in hand: a request that lost the key could otherwise take the line from the sibling that won it, and none of a crowd
// with one key would be served.
const (
	tryKeySQL  = `pg_try_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'reserve.key', $1::text, $2::text), 0))`
	tryLineSQL = `pg_try_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'reserve.line', $1::text, $3::text, $4::text, $5::bigint), 0))`

	siblingsSQL = `SELECT of_key.got, CASE WHEN of_key.got THEN ` + tryLineSQL + ` ELSE true END
	FROM (SELECT ` + tryKeySQL + ` AS got) of_key`
)

var policySQL = `SELECT hold_limit, closing, ` + openHoldsSQL("$2") + ` FROM organizations WHERE id = $1`

// openHoldsSQL counts a customer's live holds. It says held as the customer's own index does: while the statistics know of
// few held rows, any index of them looks as good, and none of the others can be used for this.
func openHoldsSQL(customer string) string {
	return `(SELECT count(*) FROM reservations
		WHERE organization_id = $1 AND customer_ref = ` + customer + ` AND ended_at IS NULL AND expires_at > clock_timestamp())`
}

// Open implements allocation.Tx.
func (r *reserving) Open(ctx context.Context, q allocation.Question) (*allocation.Opening, error) {
	var o allocation.Opening
	var known bool
	steps := []step{
		readReservation(&o.ByKey, keySQL, q.Organization, q.Key),
		{at: gate.ReserveAfterKey},
		{
			sql: siblingsSQL, args: []any{q.Organization, q.Key, q.Order.OrderID, q.Order.Line, q.Order.Unit},
			read: oneRow(new(bool), func(row pgx.Rows) error { return row.Scan(&o.KeyLocked, &o.LineLocked) }),
		},
	}
	steps = append(steps, existingSteps(&o.Existing, q)...)
	steps = append(steps, step{
		sql: policySQL, args: []any{q.Organization, orNull(q.CustomerRef)},
		read: oneRow(&known, func(row pgx.Rows) error {
			return row.Scan(&o.Policy.HoldLimit, &o.Policy.Closing, &o.OpenHolds)
		}),
	}, step{at: gate.ReserveAfterOpen})
	if err := r.send(ctx, steps...); err != nil {
		return nil, err
	}
	if !known {
		o.Policy.Closing = true // a key of an organization that is not there any more sells nothing
	}
	return &o, nil
}

// AskAgain implements allocation.Tx.
func (r *reserving) AskAgain(ctx context.Context, q allocation.Question) (allocation.Existing, error) {
	var existing allocation.Existing
	err := r.send(ctx, append([]step{{at: gate.ReserveBeforeRefusal}}, existingSteps(&existing, q)...)...)
	return existing, err
}

func existingSteps(into *allocation.Existing, q allocation.Question) []step {
	return []step{
		readReservation(&into.ByKey, keySQL, q.Organization, q.Key),
		readReservation(&into.ByLine, lineSQL, q.Organization, q.Order.OrderID, q.Order.Line, q.Order.Unit),
	}
}

// readReservation reads one reservation or leaves nil.
func readReservation(into **reservation.Reservation, sql string, args ...any) step {
	return step{sql: sql, args: args, read: oneRow(new(bool), func(row pgx.Rows) error {
		r, err := scanReservation(row)
		*into = r
		return err
	})}
}
