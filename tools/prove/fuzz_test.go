package main

import (
	"io/fs"
	"maps"
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
	rows := map[string]bool{}
	for _, r := range fuzzRows {
		target, ok := r.proof.(target)
		require.True(t, ok, r.name)
		rows[target.pkg+" "+target.name] = true
		require.Less(t, target.lasts, bound*3/4, "%s has no time to begin", r.name)
	}
	require.Len(t, fuzzRows, len(rows), "two rows for one target")
	targets := written(t)
	maps.DeleteFunc(targets, func(name string, _ bool) bool { return !strings.Contains(name, " Fuzz") })
	require.Equal(t, targets, rows)
}

// written are the tests and fuzz targets that stand in the repository, each behind its package.
func written(t *testing.T) map[string]bool {
	t.Helper()
	const root = "../.."
	all := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		dir, _ := filepath.Rel(root, filepath.Dir(name))
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(\w+ \*testing\.[TF]\)`).FindAllStringSubmatch(string(text), -1) {
			all[filepath.ToSlash(dir)+" "+m[1]] = true
		}
		return err
	}))
	return all
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
