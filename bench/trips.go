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
func countTrips(ctx context.Context, w *world, make func(w *world) []*contender, rows []Row) error {
	counter := &tripCounter{}
	config := w.pool.Config()
	config.ConnConfig.Tracer = counter
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	counted, err := serve(&world{admin: w.admin, pool: pool, servers: w.servers})
	if err != nil {
		return err
	}
	for n, c := range make(counted) {
		if err := c.prepare(ctx, nextRound()); err != nil {
			return err
		}
		done := 0
		for i := range min(tripsSampled, c.most) {
			if i == 1 { // the first prepares its statements
				counter.trips.Store(0)
				counter.statements.Store(0)
			}
			if _, err := c.do(ctx, i); err != nil {
				return err
			}
			done = i
		}
		if done > 0 {
			rows[n].Trips = &Trips{float64(counter.trips.Load()) / float64(done), float64(counter.statements.Load()) / float64(done)}
		}
		if err := w.reset(ctx); err != nil {
			return err
		}
	}
	return nil
}
