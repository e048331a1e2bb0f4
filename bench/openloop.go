package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// openLoop sends each request when the trace has it come, whether earlier ones are answered or not, and takes the time
// from that instant: a service that falls behind cannot slow down what is asked of it.
func openLoop(ctx context.Context, c *contender, at []arrival) (*measure, error) {
	loop := &loop{contender: c}
	parts := make([]measure, len(at))
	begin := time.Now()
	var all sync.WaitGroup
	for i := range at {
		due := begin.Add(at[i].at)
		if !waitUntil(ctx, due) || loop.failed.Load() != nil {
			break
		}
		all.Go(func() { loop.once(ctx, i, due, &parts[i]) })
	}
	all.Wait()
	whole := sum(parts)
	whole.elapsed = time.Since(begin)
	return whole, loop.failure(ctx)
}

func waitUntil(ctx context.Context, due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// compareArrivals plays the trace to the limit and to reservations. Every round plays another part of it.
func (r *run) compareArrivals(ctx context.Context, w *world, conditions Table) error {
	if !r.wants("trace") {
		return nil
	}
	d, err := openDoor(ctx, w, conditions.Servers)
	if err != nil {
		return err
	}
	return errors.Join(r.playTrace(ctx, w, d, conditions), d.close())
}

func (r *run) playTrace(ctx context.Context, w *world, d *door, table Table) error {
	seconds := max(1, int(r.TraceTime.Seconds()))
	table.Name = fmt.Sprintf("arrivals of the Azure trace, %d s of it in each round", seconds)
	names := []string{"limit", "reserve", "http"}
	rounds := map[string][]*measure{}
	for round := -1; round < r.Repetitions; round++ { // the first is not counted
		at, err := arrivals(azureTrace, (round+1)*seconds, seconds)
		if err != nil {
			return err
		}
		at = at[:min(len(at), w.most())]
		contenders := []*contender{w.limit(), w.reserveAs(following(at)), d.reserveAs(w, following(at))}
		for _, k := range r.random.Perm(len(contenders)) {
			c := contenders[k]
			r.tell(r.done, r.total, fmt.Sprintf("%d servers, %s, trace, round %d: %s", table.Servers, table.Stock, round+1, c.name))
			if err := c.prepare(ctx, nextRound()); err != nil {
				return err
			}
			m, err := metered(ctx, r.meter, func() (*measure, error) { return openLoop(ctx, c, at) })
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round >= 0 {
				rounds[c.name] = append(rounds[c.name], m)
			}
			if err := w.reset(ctx); err != nil {
				return err
			}
		}
	}
	table.Rounds = r.Repetitions
	for _, name := range names {
		table.Rows = append(table.Rows, row(name, rounds[name], rounds[names[0]]))
	}
	r.report.Tables = append(r.report.Tables, table)
	return nil
}
