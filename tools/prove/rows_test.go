package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryFaultHasItsRow holds the rows against the table of faults in docs/operations.md: each fault that has tests is
// named by a row that runs one of them; each of its tests is run by some row; and no row names a fault that is not its own.
func TestEveryFaultHasItsRow(t *testing.T) {
	t.Parallel()
	shown := faults(t)
	require.NotEmpty(t, shown)
	named, run := map[string]bool{}, map[string]bool{}
	for _, r := range slices.Concat(testRows, faultRows, fuzzRows) {
		for _, name := range runs(r) {
			run[name] = true
		}
		for _, id := range regexp.MustCompile(`F-[A-Z]\d+`).FindAllString(r.name, -1) {
			require.True(t, slices.ContainsFunc(runs(r), func(name string) bool { return slices.Contains(shown[id], name) }),
				"%q runs none of %v, which show %s", r.name, shown[id], id)
			named[id] = true
		}
	}
	for id, names := range shown {
		require.True(t, named[id], "no row names %s", id)
		for _, name := range names {
			require.True(t, run[name], "no row runs %s, which shows %s", name, id)
		}
	}
}

// TestRowsRunWhatIsThere finds tests in rows that were renamed or moved, and rows of one name.
func TestRowsRunWhatIsThere(t *testing.T) {
	t.Parallel()
	there, names := written(t), map[string]bool{}
	for _, r := range slices.Concat(modelRows(), testRows, faultRows, fuzzRows) {
		require.False(t, names[r.name], "two rows are called %q", r.name)
		names[r.name] = true
		s, _ := r.proof.(suite)
		for _, some := range s.tests {
			require.NotEmpty(t, some.names, r.name)
			for _, name := range some.names {
				require.True(t, there[some.pkg+" "+name], "%q runs %s of %s, which is not there", r.name, name, some.pkg)
			}
		}
	}
}

// faults are the tests that show each, as the table says.
func faults(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	all := map[string][]string{}
	for _, line := range regexp.MustCompile("(?m)^\\| (F-[A-Z]\\d+) \\|.*\\| (`.*`) \\|$").FindAllStringSubmatch(string(text), -1) {
		all[line[1]] = strings.Split(strings.Trim(line[2], "`"), "`, `")
	}
	return all
}

// runs are the tests of a row.
func runs(r row) (names []string) {
	switch p := r.proof.(type) {
	case suite:
		for _, some := range p.tests {
			names = append(names, some.names...)
		}
	case target:
		names = append(names, p.name)
	}
	return names
}
