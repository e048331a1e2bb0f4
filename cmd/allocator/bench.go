package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"allocator/bench"
)

// benchCmd measures this program on this machine.
type benchCmd struct {
	DatabaseURL secret        `name:"database-url" placeholder:"URL" help:"An empty database to fill and to empty again; without it a PostgreSQL is run for the time."`
	PostgresBin string        `name:"postgres-bin" placeholder:"DIR" setting:"POSTGRES_BIN" help:"Directory of the PostgreSQL programs to run; found by itself if left out."`
	MaxConns    int32         `name:"max-conns" default:"8" placeholder:"N" help:"The most connections all contenders share."`
	Servers     []string      `name:"servers" default:"10k" placeholder:"N,…" help:"Sizes of the inventory, such as 10k,1M."`
	Stock       []string      `name:"stock" default:"free" enum:"free,nearly-sold" placeholder:"WORD,…" help:"free, nearly-sold or both."`
	Callers     []int         `name:"callers" default:"8,32" placeholder:"N,…" help:"How many callers press at once."`
	Duration    time.Duration `name:"duration" default:"2s" placeholder:"TIME" help:"The most that one contender takes in one round."`
	Repetitions int           `name:"repetitions" default:"5" placeholder:"N" help:"Rounds."`
	Only        []string      `name:"only" placeholder:"NAME,…" help:"Measure these alone: ${benchNames}."`
	History     string        `name:"history" default:"0" placeholder:"N" help:"Measure once more with so many ended reservations beside the last inventory, such as 200k."`
	RedisURL    secret        `name:"redis-url" placeholder:"URL" secret:"" help:"A Redis for what takes a lock there first; without it one is started, if it is installed."`
	TraceTime   time.Duration `name:"trace-time" default:"5s" placeholder:"TIME" help:"How much of the trace of arrivals is played in each round."`
	Seed        uint64        `name:"seed" default:"1" placeholder:"N" help:"Equal seeds make equal stocks and requests."`
	Statements  bool          `name:"statements" help:"Tell what each statement costs the database, which slows it down."`
	CPUProfile  string        `name:"cpu-profile" placeholder:"FILE" help:"Write a profile of this process for go tool pprof."`
}

func (*benchCmd) examples() string {
	return `
		allocator bench
		allocator bench --servers 10k,100k --callers 8,32 --only limit,reserve
		allocator bench --servers 1M --duration 5s --json`
}

// Help implements kong.HelpProvider.
func (*benchCmd) Help() string {
	return "Compares reservations with the smallest statement that holds a server in the same tables, in turns and on the same " +
		"stock of real machines. Ratios compare from machine to machine; times do not. An interrupt ends it with what was measured so far."
}

// Run implements the command.
func (c *benchCmd) Run(ctx context.Context, p *process) (err error) {
	options, err := c.options(p)
	if err != nil {
		return err
	}
	url := string(c.DatabaseURL)
	if url == "" {
		p.progressf("starting PostgreSQL in a temporary directory …")
		own, stop, err := bench.OwnDatabase(ctx, c.PostgresBin, c.Statements)
		if err != nil {
			return err
		}
		url = own
		defer func() { err = errors.Join(err, stop(context.WithoutCancel(ctx))) }()
	}
	if c.CPUProfile != "" {
		file, err := os.Create(c.CPUProfile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer func() {
			pprof.StopCPUProfile()
			_ = file.Close()
		}()
	}
	report, err := bench.Run(ctx, url, options)
	p.endBar()
	if report == nil {
		return err
	}
	if p.json {
		err = errors.Join(err, p.printJSON(report))
	} else {
		report.Print(p.stdout)
	}
	return errors.Join(err, ctx.Err()) // stopped before the end
}

func (c *benchCmd) options(p *process) (bench.Options, error) {
	o := bench.Options{
		Callers: c.Callers, Duration: c.Duration, Repetitions: c.Repetitions, TraceTime: c.TraceTime, Only: c.Only,
		MaxConns: c.MaxConns, Seed: c.Seed, Trips: true, Statements: c.Statements,
		RedisURL: string(c.RedisURL), Progress: p.bar,
	}
	var err error
	if o.History, err = count(c.History, 0); err != nil {
		return o, usagef("--history %q: %v", c.History, err)
	}
	for _, stock := range c.Stock {
		o.Stocks = append(o.Stocks, bench.Stock(stock))
	}
	for _, text := range c.Servers {
		n, err := count(text, 1)
		if err != nil {
			return o, usagef("--servers %q: %v", text, err)
		}
		o.Servers = append(o.Servers, n)
	}
	if err := o.Check(); err != nil {
		return o, usagef("%v", err)
	}
	return o, nil
}

// count reads 1000, 10k or 1M.
func count(text string, least int) (int, error) {
	digits, unit := text, 1
	switch {
	case strings.HasSuffix(text, "k"):
		digits, unit = strings.TrimSuffix(text, "k"), 1000
	case strings.HasSuffix(text, "M"):
		digits, unit = strings.TrimSuffix(text, "M"), 1_000_000
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < least || n > 10_000_000/unit {
		return 0, fmt.Errorf("write a number from %d to 10M, such as 1000, 10k or 1M", least)
	}
	return n * unit, nil
}
