package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

	redis *redisServer // nil: there is none here

	large bool // this inventory is measured in part

	done, total int // turns of contenders, for the progress
}

// largeInventory is where reading a catalog takes so long that not every contender can have one of its own.
const largeInventory = 500_000

// ofLarge is what is measured of an inventory that is larger than that, beside smaller ones.
var ofLarge = []string{"limit", "reserve", "convert", "start", "memory", "evaluate"}

// wants tells whether a contender or measure of this name is to be measured on this inventory.
func (r *run) wants(name string) bool {
	return r.Options.wants(name) && (!r.large || slices.Contains(ofLarge, name))
}

// Run measures on an empty database, which it fills and empties again. Interrupted by ctx it returns what has been
// measured so far, without an error; failing in the middle, with the error.
func Run(ctx context.Context, url string, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
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
	stopRedis := r.startRedis(ctx)
	defer stopRedis()
	r.total = len(o.Servers) * len(o.Stocks) * len(o.Callers) * len(r.comparisons()) * o.Repetitions
	err = r.stages(ctx)
	r.report.Targets = r.report.targets()
	if r.report.Stopped = ctx.Err() != nil; r.report.Stopped {
		return r.report, nil
	}
	return r.report, err
}

func (r *run) stages(ctx context.Context) error {
	for _, n := range r.Servers {
		if err := r.stage(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// startRedis sees to a Redis if something asks for one.
func (r *run) startRedis(ctx context.Context) (stop func()) {
	if !slices.ContainsFunc([]string{"redis-lock", "bare-redis", "lock-redis"}, r.wants) {
		return func() {}
	}
	server, err := openRedis(ctx, r.RedisURL)
	if err != nil {
		r.note("What needs a Redis was left out: " + err.Error())
		return func() {}
	}
	r.redis = server
	return server.stop
}

// stage measures on one inventory, in each state of it.
func (r *run) stage(ctx context.Context, n int) error {
	r.large = n > largeInventory && len(r.Servers) > 1
	r.tell(r.done, r.total, fmt.Sprintf("loading %d servers", n))
	w, err := newWorld(ctx, r.admin, r.url, n, r.Options)
	if err != nil {
		return err
	}
	defer w.close()
	conditions := Table{Servers: n}
	for _, conditions.Stock = range r.Stocks {
		if err := r.stocked(ctx, w, conditions); err != nil {
			return err
		}
	}
	return r.withHistory(ctx, w, conditions)
}

// stocked makes every measure that is asked for on one state of the stock.
func (r *run) stocked(ctx context.Context, w *world, conditions Table) error {
	left := leftOfFree
	if conditions.Stock == NearlySold {
		left = leftOfNearlySold
	}
	r.tell(r.done, r.total, fmt.Sprintf("selling %d of twenty of %d servers", 20-left, conditions.Servers))
	if err := w.servers.sell(ctx, r.admin, left); err != nil {
		return err
	}
	for _, conditions.Callers = range r.Callers {
		for _, compared := range r.comparisons() {
			if err := r.measure(ctx, w, compared, conditions); err != nil {
				return err
			}
		}
	}
	conditions.Callers = 0
	if err := r.compareArrivals(ctx, w, conditions); err != nil {
		return err
	}
	return r.figures(ctx, w)
}

// comparison is a table that is made for each number of callers, if any of its contenders is asked for.
type comparison struct {
	name    string
	of      []string
	measure func(ctx context.Context, w *world, table Table) error
}

func (r *run) comparisons() []comparison {
	return []comparison{
		{
			"holding a server",
			[]string{"limit", "reserve", "http", "sql-list", "locked-set", "serializable", "redis-lock", "pgbench"},
			r.compareHolding,
		},
		{"selling a held server", []string{"convert"}, r.compareSelling},
		{"refusing", []string{"refuse"}, r.compareRefusing},
		{"reading over HTTP", []string{"select-1", "capacity"}, r.compareReading},
		{"a lock in Redis, taken and released", []string{"bare-redis", "lock-redis"}, r.compareLocks},
		{"a lock in the database, taken and released", []string{"sql-lock", "redis-door"}, r.compareRedisDoor},
		{"who edits, with 100 leases", []string{"presence"}, r.comparePresence},
	}
}

func (r *run) measure(ctx context.Context, w *world, compared comparison, table Table) error {
	if !slices.ContainsFunc(compared.of, r.wants) {
		r.done += r.Repetitions
		return nil
	}
	table.Name = compared.name
	return compared.measure(ctx, w, table)
}

// way is a contender by its name; it is nil, without an error, where it cannot be had here.
type way struct {
	name string
	make func(ctx context.Context, w *world) (*contender, error)
}

// compareAll compares those that are asked for with the first, which is always there.
func (r *run) compareAll(ctx context.Context, w *world, table Table, ways ...way) error {
	asked := ways[:1:1]
	for _, one := range ways[1:] {
		if r.wants(one.name) {
			asked = append(asked, one)
		}
	}
	return r.compare(ctx, w, table, asked)
}

func inProcess(name string, build func(w *world) *contender) way {
	return way{name, func(_ context.Context, w *world) (*contender, error) { return build(w), nil }}
}

func (r *run) compareHolding(ctx context.Context, w *world, table Table) error {
	d, err := openDoor(ctx, w, table.Callers)
	if err != nil {
		return err
	}
	ways := []way{
		inProcess("limit", (*world).limit),
		inProcess("reserve", (*world).reserve),
		{"http", r.throughDoor(d, (*door).reserve)},
		inProcess("sql-list", (*world).sqlList),
		inProcess("locked-set", (*world).lockedSet),
		inProcess("serializable", (*world).serializable),
	}
	if r.redis != nil {
		ways = append(ways, inProcess("redis-lock", func(w *world) *contender { return w.redisLock(r.redis) }))
	}
	if c, found := w.pgbench(); found {
		ways = append(ways, inProcess("pgbench", func(*world) *contender { return c }))
	}
	return errors.Join(r.compareAll(ctx, w, table, ways...), d.close())
}

// throughDoor makes contenders of the door that is open, or of another one over another world.
func (r *run) throughDoor(d *door, build func(d *door, w *world) *contender) func(ctx context.Context, w *world) (*contender, error) {
	return func(_ context.Context, w *world) (*contender, error) { return build(d, w), nil }
}

func (r *run) compareSelling(ctx context.Context, w *world, table Table) error {
	return r.compareAll(ctx, w, table, inProcess("limit", (*world).limit), inProcess("convert", (*world).convert))
}

func (r *run) compareRefusing(ctx context.Context, w *world, table Table) error {
	return r.compareAll(ctx, w, table, inProcess("reserve", (*world).reserve), inProcess("refuse", (*world).refuse))
}

func (r *run) compareReading(ctx context.Context, w *world, table Table) error {
	return r.besideSelectOne(ctx, w, table, "capacity", "/v1/capacity?group_by=site,model")
}

// besideSelectOne reads a path of the door beside SELECT 1 through the same kind of door.
func (r *run) besideSelectOne(ctx context.Context, w *world, table Table, name, path string) error {
	d, err := openDoor(ctx, w, table.Callers)
	if err != nil {
		return err
	}
	one, stop, err := selectOne(ctx, w)
	if err != nil {
		return errors.Join(err, d.close())
	}
	defer stop()
	get := func(name, url string) way {
		return inProcess(name, func(*world) *contender { return d.get(name, url) })
	}
	return errors.Join(r.compareAll(ctx, w, table, get("select-1", one), get(name, d.url+path)), d.close())
}

// note says once what was not measured, and why.
func (r *run) note(text string) {
	if !slices.Contains(r.report.Notes, text) {
		r.report.Notes = append(r.report.Notes, text)
	}
}

// compare lets contenders take turns, and adds the table to the report as far as it was measured.
func (r *run) compare(ctx context.Context, w *world, table Table, ways []way) error {
	contenders, err := made(ctx, w, ways)
	if err != nil {
		return err
	}
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
	if failure == nil && (r.Trips || r.Statements) {
		failure = r.countTrips(ctx, w, ways, table.Rows)
	}
	r.report.Tables = append(r.report.Tables, table)
	return failure
}

func made(ctx context.Context, w *world, ways []way) ([]*contender, error) {
	contenders := make([]*contender, len(ways))
	for i, one := range ways {
		var err error
		if contenders[i], err = one.make(ctx, w); err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return contenders, nil
}

// turns runs the rounds. The first is not counted: in it connections are opened, statements prepared and pages read.
func (r *run) turns(ctx context.Context, w *world, table Table, contenders []*contender, rounds map[string][]*measure) error {
	for round := -1; round < r.Repetitions; round++ {
		measures := map[string]*measure{}
		for _, k := range r.random.Perm(len(contenders)) {
			c := contenders[k]
			r.tell(r.done, r.total, fmt.Sprintf("%d servers, %s, %d callers, round %d: %s",
				table.Servers, table.Stock, table.Callers, round+1, c.name))
			if err := c.prepare(ctx, nextRound()); err != nil {
				return err
			}
			m, err := metered(ctx, r.meter, func() (*measure, error) { return closedLoop(ctx, c, table.Callers, r.Duration) })
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			measures[c.name] = m
			if err := w.reset(ctx); err != nil {
				return err
			}
		}
		if round < 0 {
			if err := w.settle(ctx); err != nil {
				return err
			}
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
