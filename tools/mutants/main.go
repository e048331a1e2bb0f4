package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// patience bounds one mutant: a test that hangs without its line is red as well.
const patience = 4 * time.Minute

func main() {
	only := flag.String("only", "", "run the mutants whose name contains this")
	table := flag.Bool("table", false, "print the table of docs/proof.md and run nothing")
	tests := flag.String("tests", "", "print the tests of this package that see lines, as a pattern for go test, and run nothing")
	flag.Parse()
	if *tests != "" {
		fmt.Println(pattern(*tests))
		return
	}
	if *table {
		fmt.Print(tableText())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// pattern names every test of a package that the table has.
func pattern(pkg string) string {
	var names []string
	for _, m := range all() {
		if m.pkg == pkg {
			names = append(names, strings.Split(m.test, "|")...)
		}
	}
	slices.Sort(names)
	return "^(" + strings.Join(slices.Compact(names), "|") + ")$"
}

// run takes each mutant through its test and reports those that survived.
func run(ctx context.Context, only string) error {
	tree, remove, err := copyOfHead(ctx)
	if err != nil {
		return err
	}
	defer remove()
	if err := usable(tree, all()); err != nil {
		return err
	}
	var survivors []string
	tried := 0
	for _, m := range all() {
		if !strings.Contains(m.name, only) {
			continue
		}
		tried++
		verdict, err := m.try(ctx, tree)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("%-8s %-40s %s\n", verdict, m.name, m.test)
		if verdict != red {
			survivors = append(survivors, m.name)
		}
	}
	fmt.Printf("%d passed, %d failed\n", tried-len(survivors), len(survivors))
	if len(survivors) > 0 {
		return fmt.Errorf("these lines can be taken out and no test sees it: %s", strings.Join(survivors, ", "))
	}
	return nil
}

// copyOfHead makes a worktree of HEAD in a temporary directory.
func copyOfHead(ctx context.Context) (tree string, remove func(), err error) {
	parent, err := os.MkdirTemp("", "allocator-mutants-")
	if err != nil {
		return "", nil, err
	}
	tree = filepath.Join(parent, "tree")
	add := exec.CommandContext(ctx, "git", "worktree", "add", "--detach", tree, "HEAD") //nolint:gosec // a path of our own
	if out, err := add.CombinedOutput(); err != nil {
		_ = os.RemoveAll(parent)
		return "", nil, fmt.Errorf("copy HEAD: %w: %s", err, out)
	}
	return tree, func() {
		_ = exec.Command("git", "worktree", "remove", "--force", tree).Run() //nolint:gosec,noctx // a path of our own, also after Ctrl-C
		_ = os.RemoveAll(parent)
	}, nil
}

// verdict is what became of a mutant.
type verdict string

const (
	red      verdict = "red"      // its test failed, as it must
	survived verdict = "SURVIVED" // its test passed without the line
	broken   verdict = "BROKEN"   // it did not compile, which proves nothing
	failing  verdict = "FAILING"  // its test fails with the line in place as well, which proves nothing either
)

// try runs the test, changes the file, runs the test again, and puts the file back.
func (m mutant) try(ctx context.Context, tree string) (verdict, error) {
	path := filepath.Join(tree, m.file)
	original, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if v, out := m.runTest(ctx, tree); v != survived {
		fmt.Fprintf(os.Stderr, "%s\n", out)
		return failing, ctx.Err()
	}
	changed := strings.Replace(string(original), m.without, m.with, 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil { //nolint:gosec // a file of the copy
		return "", err
	}
	defer func() { _ = os.WriteFile(path, original, 0o600) }() //nolint:gosec // likewise
	v, out := m.runTest(ctx, tree)
	if v == broken {
		fmt.Fprintf(os.Stderr, "%s\n", out)
	}
	return v, ctx.Err()
}

// runTest says what becomes of the test in the tree as it is.
func (m mutant) runTest(ctx context.Context, tree string) (verdict, string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	test := exec.CommandContext(ctx, "go", "test", "-tags", "gates", "-count=1", //nolint:gosec // out of our own table
		"-run", "^("+m.test+")$", "./"+m.pkg)
	test.Dir = tree
	out, err := test.CombinedOutput()
	switch {
	case err == nil:
		return survived, string(out)
	case strings.Contains(string(out), "--- FAIL") || strings.Contains(string(out), "panic: test timed out") || ctx.Err() != nil:
		return red, string(out)
	default:
		return broken, string(out)
	}
}
