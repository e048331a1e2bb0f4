package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// bound is how long a row may take. Building a test comes before its row.
const bound = time.Minute

// row is one thing to be proved.
type row struct {
	name string
	run  func(ctx context.Context) result
}

// result is what became of a row.
type result struct {
	tried   string // what, how often
	held    bool
	skipped bool   // it cannot run here; tried says why
	output  string // shown when it did not hold
}

func main() {
	only := flag.String("only", "", "run the rows whose name contains this")
	table := flag.String("table", "", "put the table into this document, in place of the one of an earlier run")
	soak := flag.Duration("soak", 0, "run the tests among the rows again and again for so long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	p := &prover{rows: slices.Concat(modelRows(), testRows, fuzzRows), only: *only}
	if *soak > 0 {
		p.rows, p.until = slices.Concat(testRows, fuzzRows), time.Now().Add(*soak)
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
	rows  []row
	only  string
	until time.Time // with a soak: when no further row is begun
	table strings.Builder
}

// prove runs the rows one after the other and prints each as it ends. It ends at the first that does not hold, whose
// output has the seed.
func (p *prover) prove(ctx context.Context) error {
	began := time.Now()
	defer func() { _ = os.Remove(builtAt) }() // if a row needed it
	p.say("| row | tried | held | time |\n|---|---|---|---|\n")
	for {
		for _, r := range p.rows {
			if !strings.Contains(r.name, p.only) || ctx.Err() != nil || !p.until.IsZero() && time.Now().After(p.until) {
				continue
			}
			if err := p.run(ctx, r); err != nil {
				return err
			}
		}
		if ctx.Err() != nil || time.Now().After(p.until) {
			break
		}
	}
	p.say(fmt.Sprintf("\n%s, %.0f s in all\n", time.Now().UTC().Format(time.DateOnly), time.Since(began).Seconds()))
	return ctx.Err()
}

// run runs one row.
func (p *prover) run(ctx context.Context, r row) error {
	start := time.Now()
	got := r.run(ctx)
	p.say(fmt.Sprintf("| %s | %s | %s | %.0f s |\n", r.name, got.tried, verdict(got), time.Since(start).Seconds()))
	if got.held || got.skipped {
		return nil
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
	default:
		return "NO"
	}
}

// command runs a program in a folder and returns what it wrote. An exit code is no error here: its output tells more.
func command(ctx context.Context, dir string, environment []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // names and arguments out of our own tables
	c.Dir, c.Env = dir, append(os.Environ(), environment...)
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return string(out), fmt.Errorf("not done within %s", bound)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	return string(out), err
}
