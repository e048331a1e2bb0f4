package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// modelFile is the model; its casts and switches are the names used below.
const modelFile = "docs/model/allocator.pml"

// design is one run of the model: the shipped design, or a wrong one, which must fail, and for the right reason.
type design struct {
	name     string
	cast     string
	switches []string
	fails    string // what the checker must say of a wrong design; "" for the shipped one
}

// What the checker says of an assertion is its text with every macro expanded; these parts of it are enough.
const (
	twoOwners   = "bound[m]"
	outOfOrder  = "!(out[m])"
	late        = "!(row[r].passed)"
	notDead     = "&&row[r].passed)"
	twoOfAKey   = "row[1].key==row[2].key"
	unanswered  = "row[2].key==k"
	freeInstant = "promised[0]"
	byAnother   = "row[r].token==1"
	notSoldOut  = "listed&&"
	deadlock    = "invalid end state"
)

var designs = []design{
	{name: "shipped: two orders buy, an operator, the sweep", cast: "SALE"},
	{name: "shipped: one key or one order line twice, and a stranger", cast: "KEYS"},
	{name: "shipped: everything done to one hold", cast: "HOLD"},
	{name: "shipped: two orders reclaim each other's servers", cast: "RECLAIM"},
	{name: "shipped: a conversion against a raw insert", cast: "RAW"},
	{name: "shipped: a conversion and an order", cast: "PAIR"},
	{"wrong: not judged again under the lock", "SALE", []string{"NO_REJUDGE"}, outOfOrder},
	{"wrong: not judged again, and the held index alone", "PAIR", []string{"NO_REJUDGE", "NO_OCCUPANCY"}, twoOwners},
	{"wrong: the held index alone", "RAW", []string{"NO_OCCUPANCY"}, twoOwners},
	{"wrong: the deadline read before the locks", "HOLD", []string{"DEADLINE_BEFORE_LOCK"}, late},
	{"wrong: the sweep moves by ids", "HOLD", []string{"SWEEP_BY_IDS"}, notDead},
	{"wrong: no question before a refusal", "KEYS", []string{"NO_LAST_QUESTION"}, unanswered},
	{"wrong: a conversion locks the reservation first", "HOLD", []string{"ROW_BEFORE_SERVER"}, deadlock},
	{"wrong: a dead hold in the way is waited for", "RECLAIM", []string{"RECLAIM_WAITS"}, deadlock},
	{"wrong: a conversion releases and rewrites", "HOLD", []string{"RELEASE_AND_REWRITE"}, freeInstant},
	{"wrong: the token read before the locks", "HOLD", []string{"TOKEN_BEFORE_LOCK"}, byAnother},
	{"wrong: at once without the server's lock", "SALE", []string{"AT_ONCE_WITHOUT_LOCK"}, outOfOrder},
	{"wrong: at once without a question for the key", "KEYS", []string{"AT_ONCE_ASKS_NOTHING"}, twoOfAKey},
	{"wrong: busy is called sold out", "SALE", []string{"BUSY_IS_SOLD_OUT"}, notSoldOut},
}

// modelRows are the runs of the model checker, or one row that says why there are none.
func modelRows() []row {
	for _, needed := range []string{"spin", "cc"} {
		if _, err := exec.LookPath(needed); err != nil {
			return []row{{"model", missing(needed + " is not here: install the packages spin and gcc")}}
		}
	}
	rows := make([]row, len(designs))
	for i, d := range designs {
		rows[i] = row{"model, " + d.name, d}
	}
	return rows
}

// missing is a row that cannot run here, and why.
type missing string

func (missing) prepare(context.Context) error { return nil }

func (m missing) run(context.Context, bool) result { return result{skipped: true, tried: string(m)} }

func (design) prepare(context.Context) error { return nil }

// run searches every state of the design, so that there is no more to a long form.
func (d design) run(ctx context.Context, _ bool) result {
	said, err := d.search(ctx)
	if err != nil {
		return result{tried: err.Error(), output: said, cut: errors.Is(err, errEnded)}
	}
	states := regexp.MustCompile(`(\d+) states, stored`).FindStringSubmatch(said)
	if states == nil {
		return result{tried: "the checker did not search", output: said}
	}
	r := result{tried: states[1] + " states", output: said}
	if d.fails == "" {
		r.held = strings.Contains(said, "errors: 0") && !strings.Contains(said, "error:") && !strings.Contains(said, "not completed")
		return r
	}
	complaint := regexp.MustCompile(`pan:1: (.*) \(at depth \d+\)`).FindStringSubmatch(said)
	r.held = complaint != nil && strings.Contains(complaint[1], d.fails)
	r.tried += ", until it failed"
	return r
}

// search makes a checker for the design, in a folder of its own, and runs it.
func (d design) search(ctx context.Context) (said string, err error) {
	model, err := filepath.Abs(modelFile)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "allocator-model-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	spin := []string{"-a", "-DCAST=" + d.cast}
	for _, s := range d.switches {
		spin = append(spin, "-D"+s)
	}
	for _, step := range [][]string{
		append(append([]string{"spin"}, spin...), model),
		// Only safety is searched for; the memory is in MiB; a longer path than -m would be reported as an error.
		{"cc", "-w", "-O1", "-DSAFETY", "-DMEMLIM=4096", "-o", "pan", "pan.c"},
		{filepath.Join(dir, "pan"), "-m100000"},
	} {
		if said, err = command(ctx, dir, nil, step[0], step[1:]...); err != nil {
			return said, fmt.Errorf("%s: %w", filepath.Base(step[0]), err)
		}
	}
	return said, nil
}
