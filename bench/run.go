package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
)

// run is one run under way.
type run struct {
	*Options

	url    string
	admin  *pgxpool.Pool
	meter  *meter
	random *rand.Rand
	report *Report

	done, total int // turns of contenders, for the progress
}

// Run measures on an empty database, which it fills and empties again. Interrupted by ctx it returns what has been
// measured so far, without an error.
func Run(ctx context.Context, url string, o Options) (*Report, error) {
	admin, err := openAdmin(ctx, url)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if err := mustBeEmpty(ctx, admin); err != nil {
		return nil, err
	}
	defer func() { _ = emptied(context.WithoutCancel(ctx), admin) }() // what is left of it is told when it is used again
	r := &run{Options: &o, url: url, admin: admin, report: &Report{Machine: machine()}}
	r.random = rand.New(rand.NewPCG(o.Seed, 2)) //nolint:gosec // the same order for the same seed
	if r.meter, err = newMeter(ctx, admin); err != nil {
		return nil, err
	}
	if r.report.Settings, err = settings(ctx, admin); err != nil {
		return nil, err
	}
	r.total = len(o.Servers) * len(o.Stocks) * len(o.Callers) * o.Repetitions
	for _, n := range o.Servers {
		if err := r.stage(ctx, n); err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				r.report.Stopped = true
				return r.report, nil
			}
			return nil, err
		}
	}
	return r.report, nil
}

// stage measures on one inventory, in each state of it.
func (r *run) stage(ctx context.Context, n int) error {
	r.tell(r.done, r.total, fmt.Sprintf("loading %d servers", n))
	w, err := newWorld(ctx, r.admin, r.url, n, r.Options)
	if err != nil {
		return err
	}
	defer w.close()
	for _, stock := range r.Stocks {
		if stock == NearlySold {
			r.tell(r.done, r.total, fmt.Sprintf("selling most of %d servers", n))
			if err := w.servers.sell(ctx, r.admin); err != nil {
				return err
			}
		}
		for _, callers := range r.Callers {
			table := Table{Name: "reservations", Servers: n, Stock: stock, Callers: callers}
			if err := r.compare(ctx, w, table, r.holding); err != nil {
				return err
			}
		}
	}
	return nil
}

// holding are the ways to hold a server; the first is the limit.
func (r *run) holding(w *world) []*contender {
	all := []*contender{w.limit()}
	if r.wants("reserve") {
		all = append(all, w.reserve(r.Seed))
	}
	return all
}

// compare lets contenders take turns, and adds the table to the report as far as it was measured.
func (r *run) compare(ctx context.Context, w *world, table Table, ways func(w *world) []*contender) error {
	contenders := ways(w)
	rounds := map[string][]*measure{}
	failure := r.turns(ctx, w, table, contenders, rounds)
	base := rounds[contenders[0].name]
	if len(base) == 0 {
		return failure
	}
	table.Rounds = len(base)
	for _, c := range contenders {
		table.Rows = append(table.Rows, row(c.name, rounds[c.name], base))
	}
	if failure == nil {
		failure = r.countTrips(ctx, w, ways, table.Rows)
	}
	r.report.Tables = append(r.report.Tables, table)
	return failure
}

// turns runs the rounds. The first is not counted: in it connections are opened, statements prepared and pages read.
func (r *run) turns(ctx context.Context, w *world, table Table, contenders []*contender, rounds map[string][]*measure) error {
	for round := -1; round < r.Repetitions; round++ {
		measures := map[string]*measure{}
		for _, k := range r.random.Perm(len(contenders)) {
			c := contenders[k]
			r.tell(r.done, r.total, fmt.Sprintf("%d servers, %s, %d callers, round %d: %s", table.Servers, table.Stock, table.Callers, round+1, c.name))
			if err := c.prepare(ctx, nextRound()); err != nil {
				return err
			}
			m, err := closedLoop(ctx, c, table.Callers, r.Duration, r.meter)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			measures[c.name] = m
			if err := w.reset(ctx); err != nil {
				return err
			}
		}
		if round < 0 {
			continue
		}
		r.done++
		for name, m := range measures {
			rounds[name] = append(rounds[name], m)
		}
	}
	return nil
}

var roundNumber atomic.Int64

// nextRound names a round, so that keys and orders of two of them differ.
func nextRound() string { return "r" + strconv.FormatInt(roundNumber.Add(1), 10) + "-" }
