package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's folder, seen from here.
const root = "../.."

// TestEveryLineCanBeTakenOut finds the entries that a change of the product has made unusable: each text stands exactly
// once in its file, what replaces it is something else, and the tests that must see it exist.
func TestEveryLineCanBeTakenOut(t *testing.T) {
	t.Parallel()
	require.NoError(t, usable(root, all()))
	for _, m := range all() {
		require.NotEqual(t, m.without, m.with, m.name)
		sources, err := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
		require.NoError(t, err)
		var tests strings.Builder
		for _, name := range sources {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			tests.Write(text)
		}
		for test := range strings.SplitSeq(m.test, "|") {
			known := strings.Contains(tests.String(), "func "+test+"(")
			require.True(t, known, "%s: there is no test %s in %s", m.name, test, m.pkg)
		}
	}
}

// TestUnusableEntriesAreToldAtOnce shows what is said of a line that is not there, or there twice, before anything runs.
func TestUnusableEntriesAreToldAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte("a b a"), 0o600))
	entry := func(name, without string) mutant { return mutant{name: name, file: "x.go", without: without} }
	require.NoError(t, usable(dir, []mutant{entry("good", "b")}))
	err := usable(dir, []mutant{entry("good", "b"), entry("gone", "c"), entry("twice", "a"), {name: "away", file: "y.go"}})
	require.ErrorContains(t, err, "gone: the text to take out stands 0 times in x.go")
	require.ErrorContains(t, err, "twice: the text to take out stands 2 times in x.go")
	require.ErrorContains(t, err, "away: there is no file y.go")
	require.NotContains(t, err.Error(), "good")
}

// TestProofShowsTheTable holds docs/proof.md against the entries.
func TestProofShowsTheTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/proof.md"))
	require.NoError(t, err)
	current := strings.Contains(string(text), tableText())
	require.True(t, current, "docs/proof.md is not current: `go run ./tools/mutants -table` prints its table")
}
