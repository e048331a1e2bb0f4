package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// bound is how long a row may take, and longBound in its long form. Building comes before its row.
const (
	bound     = time.Minute
	longBound = 30 * time.Minute
)

// row is one thing to be proved.
type row struct {
	name string
	proof
}

// proof is how it is proved.
type proof interface {
	// prepare does what comes before the row's time.
	prepare(ctx context.Context) error
	// run tries it until ctx ends, if it takes so long.
	run(ctx context.Context, long bool) result
}

// result is what became of a row.
type result struct {
	tried   string // what, how often
	held    bool
	skipped bool   // it cannot run here; tried says why
	cut     bool   // its time was over before it was done; until then nothing had failed
	output  string // shown when it did not hold
}

func main() {
	only := flag.String("only", "", "run the rows whose name contains this")
	table := flag.String("table", "", "put the table into this document, in place of the one of an earlier run")
	soak := flag.Duration("soak", 0, "run the long forms of the rows for so long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	p := &prover{once: modelRows(), rows: slices.Concat(testRows, faultRows, fuzzRows), only: *only, bound: bound}
	if *soak > 0 {
		p.bound, p.until = longBound, time.Now().Add(*soak)
	}
	err := p.prove(ctx)
	if err == nil && *table != "" {
		err = putTable(*table, p.table.String())
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

// prover runs rows and keeps their table.
type prover struct {
	once  []row // what nothing is gained by repeating
	rows  []row
	only  string
	bound time.Duration // of a row
	until time.Time     // with a soak: when it ends
	table strings.Builder
}

// prove runs the rows one after the other and prints each as it ends. It ends at the first that does not hold, whose
// output has the seed. A soak takes those that it repeats in another order each time, so that short ones get to all.
func (p *prover) prove(ctx context.Context) error {
	began := time.Now()
	defer func() { _ = os.RemoveAll(builtIn) }()
	p.say("| row | tried | held | time |\n|---|---|---|---|\n")
	once, rows := p.chosen(p.once), p.chosen(p.rows)
	if len(once)+len(rows) == 0 {
		return fmt.Errorf("no row's name contains %q", p.only)
	}
	err := p.each(ctx, once)
	for err == nil && len(rows) > 0 {
		if p.soaks() {
			rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] }) //nolint:gosec // no secret
		}
		if err = p.each(ctx, rows); !p.soaks() || p.over() {
			break
		}
	}
	p.say(fmt.Sprintf("\n%s, %.0f s in all\n", time.Now().UTC().Format(time.DateOnly), time.Since(began).Seconds()))
	return err
}

func (p *prover) chosen(rows []row) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !strings.Contains(r.name, p.only) })
}

func (p *prover) soaks() bool { return !p.until.IsZero() }

// over tells whether the soak's time is.
func (p *prover) over() bool { return p.soaks() && !time.Now().Before(p.until) }

func (p *prover) each(ctx context.Context, rows []row) error {
	for _, r := range rows {
		if p.over() {
			break
		}
		if err := p.run(ctx, r); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// run runs one row, and ends it when its time is over or the soak's.
func (p *prover) run(ctx context.Context, r row) error {
	if err := r.prepare(ctx); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	start := time.Now()
	until := start.Add(p.bound)
	if p.soaks() && p.until.Before(until) {
		until = p.until
	}
	within, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	got := r.run(within, p.soaks())
	got.cut = got.cut && (ctx.Err() != nil || p.over())
	p.say(fmt.Sprintf("| %s | %s | %s | %.0f s |\n", r.name, got.tried, verdict(got), time.Since(start).Seconds()))
	if got.held || got.skipped || got.cut {
		return ctx.Err()
	}
	fmt.Fprintf(os.Stderr, "%s\n", got.output)
	return fmt.Errorf("did not hold: %s", r.name)
}

func (p *prover) say(text string) {
	fmt.Print(text)
	p.table.WriteString(text)
}

// tableStart is the line of a document below which the table of a run stands, up to the next heading or the end.
const tableStart = "One run of `make prove`"

// putTable puts a table in place of the one that a document has.
func putTable(name, table string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), tableStart)
	if !found {
		return fmt.Errorf("%s has no line that begins %q", name, tableStart)
	}
	after := ""
	if at := strings.Index(rest, "\n## "); at >= 0 {
		after = rest[at:]
	}
	head := fmt.Sprintf("%s on a machine of %d cores:\n\n", tableStart, runtime.NumCPU())
	return os.WriteFile(name, []byte(before+head+table+after), 0o600) //nolint:gosec // the caller's own document
}

func verdict(r result) string {
	switch {
	case r.skipped:
		return "skipped"
	case r.held:
		return "yes"
	case r.cut:
		return "cut off"
	default:
		return "NO"
	}
}
