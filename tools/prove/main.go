package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
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
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := prove(ctx, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

// prove runs the rows one after the other and prints each as it ends.
func prove(ctx context.Context, only string) error {
	var broken []string
	began := time.Now()
	defer func() { _ = os.Remove(builtAt) }() // if a row needed it
	fmt.Print("| row | tried | held | time |\n|---|---|---|---|\n")
	for _, r := range append(modelRows(), testRows...) {
		if !strings.Contains(r.name, only) || ctx.Err() != nil {
			continue
		}
		start := time.Now()
		got := r.run(ctx)
		fmt.Printf("| %s | %s | %s | %.0f s |\n", r.name, got.tried, verdict(got), time.Since(start).Seconds())
		if !got.held && !got.skipped {
			broken = append(broken, r.name)
			fmt.Fprintf(os.Stderr, "%s\n", got.output)
		}
	}
	fmt.Printf("\n%s, %.0f s in all\n", time.Now().UTC().Format(time.DateOnly), time.Since(began).Seconds())
	if len(broken) > 0 {
		return fmt.Errorf("did not hold: %s", strings.Join(broken, "; "))
	}
	return ctx.Err()
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
