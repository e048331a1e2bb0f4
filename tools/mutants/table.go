package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one line taken out, and the test that must see it.
type mutant struct {
	name    string
	promise string // number in section 2 of the design; "-" for a rule beside them
	file    string
	without string // stands exactly once in file
	with    string
	pkg     string
	test    string
}

// The files and the packages of tests that are named more than once.
const (
	core   = "migrations/00001_core.sql"
	try    = "store/postgres/reservations_try.go"
	atOnce = "store/postgres/reservations_atonce.go"
	open   = "store/postgres/reservations_open.go"
	deeds  = "store/postgres/reservations_change.go"
	sales  = "store/postgres/reservations_convert.go"
	walk   = "allocation/walk.go"

	races    = "concurrency_test"
	stores   = "store/postgres"
	httpDoor = "transport/httpapi"
)

// all are the entries of every list.
func all() []mutant {
	return slices.Concat(reserveMutants, changeMutants, lockDoorMutants, leaseMutants, lockMutants, caseMutants)
}

// usable tells, before anything is run, which entries a change of the product has made unusable.
func usable(tree string, entries []mutant) error {
	var faults []error
	for _, m := range entries {
		text, err := os.ReadFile(filepath.Join(tree, m.file))
		switch n := strings.Count(string(text), m.without); {
		case err != nil:
			faults = append(faults, fmt.Errorf("%s: there is no file %s", m.name, m.file))
		case n != 1:
			faults = append(faults, fmt.Errorf("%s: the text to take out stands %d times in %s, and must once: %s", m.name, n, m.file, oneLine(m.without)))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("repair these entries of tools/mutants first:\n%w", errors.Join(faults...))
}

// tableText is the table of docs/proof.md.
func tableText() string {
	var b strings.Builder
	b.WriteString("| promise | protection | file | taken out | test that goes red |\n|---|---|---|---|---|\n")
	for _, m := range all() {
		fmt.Fprintf(&b, "| %s | %s | `%s` | `%s` | `%s` |\n", m.promise, m.name, m.file, oneLine(m.without), oneLine(m.test))
	}
	return b.String()
}

// oneLine makes code fit for a cell of a table.
func oneLine(code string) string {
	code = strings.Join(strings.Fields(code), " ")
	return strings.ReplaceAll(strings.ReplaceAll(code, "`", "'"), "|", "\\|")
}
