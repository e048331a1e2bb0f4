package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/bench"
	"allocator/store/postgres/postgrestest"
)

func TestBenchOnAGivenDatabase(t *testing.T) {
	t.Parallel()
	got := inProcess(t, nil, "bench", "--database-url", postgrestest.EmptyURL(t), "--only", "limit,reserve", "--servers", "200",
		"--callers", "2", "--duration", "20ms", "--repetitions", "1", "--json")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Empty(t, got.stderr, "nobody watches, so there is no progress to see")
	var report bench.Report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.Len(t, report.Tables, 1)
	require.Equal(t, []string{"limit", "reserve"}, []string{report.Tables[0].Rows[0].Name, report.Tables[0].Rows[1].Name})

	got = inProcess(t, nil, "bench", "--database-url", postgrestest.URL(t), "--only", "limit")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.stderr, "the database is not empty")
}

func TestBenchRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		says string
	}{
		"a name that is not there":  {[]string{"--only", "speed"}, `there is nothing called "speed" to measure`},
		"no servers":                {[]string{"--servers", "0"}, `--servers "0": write a number from 1 to 10M, such as 1000, 10k or 1M`},
		"a number in other words":   {[]string{"--servers", "many"}, `--servers "many": write a number`},
		"more servers than anybody": {[]string{"--servers", "11M"}, `--servers "11M": write a number`},
		"a history in other words":  {[]string{"--history", "long"}, `--history "long": write a number from 0`},
		"no callers":                {[]string{"--callers", "0"}, "at least one caller"},
		"no time":                   {[]string{"--duration", "0s"}, "some time"},
		"no rounds":                 {[]string{"--repetitions", "0"}, "at least one round"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := inProcess(t, nil, append([]string{"bench"}, tt.args...)...)
			require.Equal(t, exitUsage, got.code, got.stderr)
			require.Contains(t, got.stderr, tt.says)
			require.Empty(t, got.stdout)
		})
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"1": 1, "1000": 1000, "10k": 10_000, "1M": 1_000_000, "10M": 10_000_000} {
		n, err := count(text, 1)
		require.NoError(t, err)
		require.Equal(t, want, n, text)
	}
}

func TestProgressBar(t *testing.T) {
	t.Parallel()
	var seen strings.Builder
	p := &process{stderr: &seen, terminal: true}
	p.bar(0, 0, "loading")
	p.bar(3, 4, "round 3")
	p.bar(9, 4, "more than was thought")
	p.endBar()
	require.Equal(t, "\r\x1b[K[........................] loading"+
		"\r\x1b[K[##################......] round 3"+
		"\r\x1b[K[########################] more than was thought"+
		"\r\x1b[K", seen.String())

	seen.Reset()
	p.terminal = false
	p.bar(1, 2, "nobody watches")
	p.endBar()
	require.Empty(t, seen.String())
}
