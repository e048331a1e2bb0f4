package bench

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Trips is how often one operation goes to the database when nobody else does, and with how many statements.
type Trips struct {
	RoundTrips float64 `json:"round_trips"`
	Statements float64 `json:"statements"`
}

// tripCounter counts what a pool sends. Measured rounds use a pool without it.
type tripCounter struct{ trips, statements atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (c *tripCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.trips.Add(1)
	c.statements.Add(1)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*tripCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (c *tripCounter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	c.trips.Add(1)
	c.statements.Add(int64(data.Batch.Len()))
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*tripCounter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*tripCounter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// tripsSampled is how many operations are counted.
const tripsSampled = 100

// countTrips runs each contender alone, on a pool of its own that counts, and adds what it saw to the rows.
func (r *run) countTrips(ctx context.Context, w *world, ways []way, rows []Row) error {
	counter := &tripCounter{}
	config := w.pool.Config()
	config.ConnConfig.Tracer = counter
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	counted, err := serve(&world{admin: w.admin, pool: pool, servers: w.servers, seed: w.seed, duration: w.duration})
	if err != nil {
		return err
	}
	contenders, err := made(ctx, counted, ways)
	if err != nil {
		return err
	}
	for n, c := range contenders {
		if c.alone != nil {
			continue
		}
		if err := r.countTripsOf(ctx, c, counter, &rows[n]); err != nil {
			return err
		}
		if err := w.reset(ctx); err != nil {
			return err
		}
	}
	return nil
}

// countTripsOf leaves the first operations out: in them statements are prepared and planned for the first times.
func (r *run) countTripsOf(ctx context.Context, c *contender, counter *tripCounter, into *Row) error {
	if err := c.prepare(ctx, nextRound()); err != nil {
		return err
	}
	n := tripsSampled
	if c.most > 0 {
		n = min(n, c.most)
	}
	skipped := n / 4
	for i := range n {
		if i == skipped {
			counter.trips.Store(0)
			counter.statements.Store(0)
			if r.Statements {
				if err := forgetStatements(ctx, r.admin); err != nil {
					return err
				}
			}
		}
		if _, err := c.do(ctx, i); err != nil {
			return err
		}
	}
	each := float64(n - skipped)
	if counter.trips.Load() > 0 { // 0: by way of a door to another pool
		into.Trips = &Trips{float64(counter.trips.Load()) / each, float64(counter.statements.Load()) / each}
	}
	var err error
	if r.Statements {
		into.Statements, err = seenStatements(ctx, r.admin, n-skipped)
	}
	return err
}
