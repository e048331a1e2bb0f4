package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryFuzzTargetHasItsRow finds targets that nobody would run for longer, and rows of targets that are gone.
func TestEveryFuzzTargetHasItsRow(t *testing.T) {
	t.Parallel()
	const root = "../.."
	source, err := os.ReadFile("fuzz.go")
	require.NoError(t, err)
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([^"]+)", "(Fuzz\w+)"\)`).FindAllStringSubmatch(string(source), -1) {
		rows[m[1]+" "+m[2]] = true
	}
	require.Len(t, fuzzRows, len(rows), "two rows for one target")
	targets := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		dir, _ := filepath.Rel(root, filepath.Dir(name))
		for _, m := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`).FindAllStringSubmatch(string(text), -1) {
			targets[filepath.ToSlash(dir)+" "+m[1]] = true
		}
		return err
	}))
	require.Equal(t, targets, rows)
}

// TestInputsAreCounted shows what is taken out of what Go says.
func TestInputsAreCounted(t *testing.T) {
	t.Parallel()
	require.Equal(t, "7 inputs", inputs("fuzz: elapsed: 0s, execs: 3 (1/sec)\nfuzz: elapsed: 1s, execs: 7 (1/sec)\nPASS\n"))
	require.Equal(t, none, inputs("ok"))
}

// TestEndOfTheTimeIsNoFailure tells Go's own end from what a target says of an input.
func TestEndOfTheTimeIsNoFailure(t *testing.T) {
	t.Parallel()
	require.Regexp(t, outOfTime, "fuzz: elapsed: 10s, execs: 5\n--- FAIL: FuzzBearer (10.46s)\n    context deadline exceeded\nFAIL\nexit status 1\n")
	require.NotRegexp(t, outOfTime, "\n--- FAIL: FuzzBearer (0.10s)\n    --- FAIL: FuzzBearer (0.00s)\n        x_test.go:1: context deadline exceeded\n    Failing input written to testdata\nFAIL\n")
	require.NotRegexp(t, outOfTime, "\n--- FAIL: FuzzBearer (9.10s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\nFAIL\n")
}
