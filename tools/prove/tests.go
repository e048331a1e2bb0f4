package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// testRows are tests of the repository, some in a longer form than `make test` has.
var testRows = []row{
	{"every schedule of two operations, and a chosen few of three", race("TestEverySchedule")},
	{"histories of many clients over several processes", race("TestHistories", "CONCURRENCY_ROUNDS=8")},
	{"traces against a model, on one instance and on three", race("TestStateMachine", "CONCURRENCY_ROUNDS=40")},
}

// race runs a test of concurrency_test. The race detector is left to `make test`, so that more is tried in the same
// time. A setting NAME=value asks for a longer form.
func race(test string, settings ...string) func(ctx context.Context) result {
	return func(ctx context.Context) result {
		binary, err := racesBinary()
		if err != nil {
			return result{tried: err.Error()}
		}
		ctx, cancel := context.WithTimeout(ctx, bound)
		defer cancel()
		said, err := command(ctx, "concurrency_test", settings, binary, "-test.v", "-test.run=^"+test+"$")
		if err != nil {
			return result{tried: err.Error(), output: said}
		}
		return result{tried: tried(said), held: strings.HasSuffix(said, "\nPASS\n"), output: said}
	}
}

// builtAt is where this process builds the tests.
var builtAt = filepath.Join(os.TempDir(), fmt.Sprintf("allocator-races-%d.test", os.Getpid()))

// racesBinary builds the tests once, outside of any row's time.
var racesBinary = sync.OnceValues(func() (string, error) {
	said, err := command(context.Background(), ".", nil, "go", "test", "-c", "-tags", "gates", "-o", builtAt, "./concurrency_test")
	if err == nil && said != "" {
		err = fmt.Errorf("the tests do not compile: %s", said)
	}
	return builtAt, err
})

// tried is what the test says that it tried, in lines of its log that begin with "tried:".
func tried(said string) string {
	var counts []string
	for _, line := range regexp.MustCompile(`(?m)^.*\.go:\d+: tried: (.*)$`).FindAllStringSubmatch(said, -1) {
		counts = append(counts, line[1])
	}
	return strings.Join(counts, "; ")
}
