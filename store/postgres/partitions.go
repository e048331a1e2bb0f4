package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Partitions keeps the tables that are kept by month supplied with partitions, and takes away the old ones.
type Partitions struct{ pool *pgxpool.Pool }

// NewPartitions makes the store.
func NewPartitions(pool *pgxpool.Pool) *Partitions { return &Partitions{pool: pool} }

// MakeMonths makes what is missing for the present month and those ahead, and says how many partitions it made. Safe to
// run anywhere at any time, by several at once too.
func (p *Partitions) MakeMonths(ctx context.Context, ahead int) (made int, err error) {
	err = p.pool.QueryRow(ctx, `SELECT make_month_partitions($1)`, ahead).Scan(&made)
	return made, translate(err)
}

// DropOld drops the months that are older than decision_retention() and says how many partitions that were. It waits only
// a moment for those who use the tables, and fails then with reservation.ErrUnavailable: nothing was dropped, and the next
// run tries again. Safe to run anywhere at any time.
func (p *Partitions) DropOld(ctx context.Context) (dropped int, err error) {
	err = p.pool.QueryRow(ctx, `SELECT drop_old_months()`).Scan(&dropped)
	return dropped, translate(err)
}
