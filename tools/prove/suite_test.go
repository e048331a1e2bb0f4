package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatTestsSay shows what becomes of a row by what its tests wrote.
func TestWhatTestsSay(t *testing.T) {
	t.Parallel()
	two, piece := in("p", "TestA", "TestB"), tests{pkg: "p", names: []string{"TestA"}, part: "one_part"}
	for sentence, c := range map[string]struct {
		tests tests
		said  string
		want  result
	}{
		"all passed": {
			two, "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)\nPASS\n", result{held: true},
		},
		"one did not run":    {two, "--- PASS: TestA (0.00s)\nPASS\n", result{tried: "did not run: TestB"}},
		"none is there":      {two, "testing: warning: no tests to run\nPASS\n", result{tried: "did not run: TestA"}},
		"a longer name":      {two, "--- PASS: TestA (0.00s)\n--- PASS: TestBC (0.00s)\nPASS\n", result{tried: "did not run: TestB"}},
		"one failed":         {two, "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n", result{tried: "failed: TestB"}},
		"a skip and failure": {two, "    a_test.go:1: none\n--- SKIP: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n", result{tried: "failed: TestB"}},
		"something else failed": {
			two, "--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\nWARNING\nFAIL\n", result{tried: "failed"},
		},
		"one says why it cannot": {
			two, "=== RUN   TestA\n    a_test.go:1: no tool\n--- SKIP: TestA (0.00s)\n--- PASS: TestB (0.00s)\nPASS\n", result{skipped: true, tried: "no tool"},
		},
		"the part passed":       {piece, "--- PASS: TestA (0.00s)\n    --- PASS: TestA/one_part (0.00s)\nPASS\n", result{held: true}},
		"the part is not there": {piece, "--- PASS: TestA (0.00s)\nPASS\n", result{tried: "did not run: TestA/one_part"}},
		"the part cannot":       {piece, "        a_test.go:1: no\n    --- SKIP: TestA/one_part (0.00s)\n--- PASS: TestA (0.00s)\nPASS\n", result{skipped: true, tried: "no"}},
		"the whole cannot":      {piece, "    a_test.go:1: no\n--- SKIP: TestA (0.00s)\nPASS\n", result{skipped: true, tried: "no"}},
	} {
		c.want.output = c.said
		require.Equal(t, c.want, c.tests.judge(c.said), sentence)
	}
}

// TestWhatWasTriedIsTold counts what says nothing of its own.
func TestWhatWasTriedIsTold(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1 test, once", tried("--- PASS: TestA (0.00s)\n    --- PASS: TestA/b (0.00s)\nPASS\n"))
	require.Equal(t, "2 tests, once each", tried("--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\nPASS\n"))
	require.Equal(t, "7 rounds", tried("    a_test.go:1: tried: 7 rounds\n--- PASS: TestA (0.00s)\nPASS\n"))
	require.Equal(t, "2 tests, once each: 7 rounds", tried("    a_test.go:1: tried: 7 rounds\n--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\n"))
}

// TestSettingsOfTheForms shows which setting a row has for a minute and for long.
func TestSettingsOfTheForms(t *testing.T) {
	t.Parallel()
	require.Equal(t, suite{tests: []tests{in(concurrency, "TestA")}}, races("TestA"))
	require.Equal(t, suite{tests: []tests{in(concurrency, "TestA")}, settings: "N=1", long: "N=1"}, races("TestA", "N=1"))
	require.Equal(t, suite{tests: []tests{in(concurrency, "TestA")}, settings: "N=1", long: "N=9"}, races("TestA", "N=1", "N=9"))
	require.Equal(t, "^(TestA)$/^its_part$", part("TestA", "its part").tests[0].pattern())
}
