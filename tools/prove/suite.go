package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
)

// suite is a row of tests of the repository.
type suite struct {
	tests    []tests
	settings string // NAME=value, for a form that fits into a minute; "" leaves that of `make test`
	long     string // the same for the long form
}

// tests are some of one package.
type tests struct {
	pkg   string
	names []string
	part  string // only this part of the one test
}

// races is one test of concurrency_test, with its setting for a minute and for long.
func races(test string, settings ...string) suite {
	s := suite{tests: []tests{in(concurrency, test)}}
	if len(settings) > 0 {
		s.settings, s.long = settings[0], settings[len(settings)-1]
	}
	return s
}

// part is one part of a test of concurrency_test.
func part(test, name string, settings ...string) suite {
	s := races(test, settings...)
	s.tests[0].part = strings.ReplaceAll(name, " ", "_")
	return s
}

// together are tests as they are, each once.
func together(all ...tests) suite { return suite{tests: all} }

func in(pkg string, names ...string) tests { return tests{pkg: pkg, names: names} }

func (s suite) prepare(ctx context.Context) error {
	for _, t := range s.tests {
		if _, err := testsOf(ctx, t.pkg); err != nil {
			return err
		}
	}
	return nil
}

// run runs one package after the other, until one fails.
func (s suite) run(ctx context.Context, long bool) result {
	setting := s.settings
	if long {
		setting = s.long
	}
	whole, said := result{held: true}, ""
	for _, t := range s.tests {
		r := t.run(ctx, setting)
		if !r.held && !r.skipped {
			return r
		}
		said += r.output
		if r.skipped {
			whole = r
		}
	}
	if whole.held {
		whole.tried = tried(said)
	}
	return whole
}

func (t tests) run(ctx context.Context, setting string) result {
	binary, err := testsOf(ctx, t.pkg)
	if err != nil {
		return result{tried: err.Error()}
	}
	var environment []string
	if setting != "" {
		environment = []string{setting}
	}
	said, err := command(ctx, t.pkg, environment, binary, "-test.v", "-test.run="+t.pattern())
	if err != nil {
		return result{tried: err.Error(), output: said, cut: !failed.MatchString(said)}
	}
	return t.judge(said)
}

func (t tests) pattern() string {
	pattern := "^(" + strings.Join(t.names, "|") + ")$"
	if t.part != "" {
		pattern += "/^" + t.part + "$"
	}
	return pattern
}

// judge wants each of the tests to have passed, so that a name of which nothing is there is no proof.
func (t tests) judge(said string) result {
	r := result{output: said, held: true}
	for _, name := range t.names {
		if t.part != "" {
			name += "/" + t.part
		}
		ended := regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): ` + regexp.QuoteMeta(name) + ` \(`).FindStringSubmatch(said)
		switch {
		case skippedWhole(said, name):
			r.held, r.skipped, r.tried = false, true, why(said, name)
		case ended == nil:
			return result{output: said, tried: "did not run: " + name}
		case ended[1] != "PASS":
			return result{output: said, tried: "failed: " + name}
		}
	}
	if !strings.HasSuffix(said, "\nPASS\n") {
		return result{output: said, tried: "failed"}
	}
	return r
}

// failed is how a test says so.
var failed = regexp.MustCompile(`(?m)^ *--- FAIL: `)

// skippedWhole tells whether a test says that it cannot run here, or its whole does so for a part.
func skippedWhole(said, name string) bool {
	whole, _, _ := strings.Cut(name, "/")
	return regexp.MustCompile(`(?m)^ *--- SKIP: (` + regexp.QuoteMeta(name) + `|` + whole + `) \(`).MatchString(said)
}

// why is what a test says of that.
func why(said, name string) string {
	whole, _, _ := strings.Cut(name, "/")
	reason := regexp.MustCompile(`(?m)^ +\S+\.go:\d+: (.*)\n *--- SKIP: ` + whole + `\b`).FindStringSubmatch(said)
	if reason == nil {
		return name + " does not run here"
	}
	return reason[1]
}

var (
	passedTest = regexp.MustCompile(`(?m)^--- PASS: `)
	triedLine  = regexp.MustCompile(`(?m)^.*\.go:\d+: tried: (.*)$`)
)

// tried is what the tests say that they tried, in lines of their log that begin with "tried:", and how many they were.
func tried(said string) string {
	var counts []string
	for _, line := range triedLine.FindAllStringSubmatch(said, -1) {
		counts = append(counts, line[1])
	}
	n, word := len(passedTest.FindAllString(said, -1)), "1 test, once"
	if n > 1 {
		word = fmt.Sprintf("%d tests, once each", n)
	}
	if n > 1 && len(counts) > 0 {
		return word + ": " + strings.Join(counts, "; ")
	}
	return cmp.Or(strings.Join(counts, "; "), word)
}
