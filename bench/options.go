package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options settle one run.
type Options struct {
	Servers     []int         // how many servers there are, one stage for each number; of several, more than 500,000 are measured in part
	Stocks      []Stock       // in which states the stock is measured
	Callers     []int         // how many callers press at once
	Duration    time.Duration // of one contender in one round, at most
	Repetitions int           // rounds; the median of fewer than five says little
	Only        []string      // names of contenders and measures; none: all
	TraceTime   time.Duration // how much of the trace is played in each round
	MaxConns    int32         // of the pool that all contenders share
	Seed        uint64        // equal seeds make equal stocks, orders of contenders and requests

	History  int    // with how many ended reservations beside the last inventory reservations are measured once more
	RedisURL string // for what takes a lock in Redis; empty: one is started, if there is a program for it

	// Trips tells how often each contender goes to the database.
	Trips bool

	// Statements tells what each statement costs the database, which must have pg_stat_statements loaded. It slows
	// everything down.
	Statements bool

	// Progress is told what is being done, and how much of the whole is over. It may be nil.
	Progress func(done, total int, what string)
}

// Stock is how much of an inventory is sold when a round begins.
type Stock string

// The stocks.
const (
	AllFree    Stock = "free"        // but for one of twenty
	NearlySold Stock = "nearly-sold" // nineteen of twenty are bound
)

// Stocks lists them.
func Stocks() []Stock { return []Stock{AllFree, NearlySold} }

// Names are what can be asked for alone.
func Names() []string {
	return []string{
		"limit", "reserve", "http", "sql-list", "locked-set", "serializable", "redis-lock", "pgbench",
		"convert", "refuse", "select-1", "capacity", "bare-redis", "lock-redis", "sql-lock", "redis-door", "presence",
		"trace", "start", "evaluate", "evaluate-http", "memory",
	}
}

// Check says what of the options cannot be meant.
func (o *Options) Check() error {
	switch {
	case len(o.Callers) == 0 || slices.Min(o.Callers) < 1:
		return errors.New("there must be at least one caller")
	case len(o.Servers) == 0 || slices.Min(o.Servers) < 1:
		return errors.New("there must be at least one server")
	case len(o.Stocks) == 0:
		return errors.New("there must be a stock to measure on")
	case o.Duration <= 0:
		return errors.New("a turn must have some time")
	case o.Repetitions < 1:
		return errors.New("there must be at least one round")
	}
	for _, name := range o.Only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is nothing called %q to measure: choose of %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// wants tells whether a contender or measure of this name is asked for.
func (o *Options) wants(name string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, name) }

func (o *Options) tell(done, total int, what string) {
	if o.Progress != nil {
		o.Progress(done, total, what)
	}
}
