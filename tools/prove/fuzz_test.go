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
