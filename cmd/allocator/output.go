package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

// printJSON writes a value for programs.
func (p *process) printJSON(value any) error {
	encoder := json.NewEncoder(p.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// printJSONLine writes a value as exactly one line, for a program that reads while this one goes on.
func (p *process) printJSONLine(value any) error {
	encoder := json.NewEncoder(p.stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// printf writes text that was asked for.
func (p *process) printf(format string, args ...any) { fmt.Fprintf(p.stdout, format, args...) }

// table is aligned text on stdout.
type table struct{ w *tabwriter.Writer }

// table begins one with its heading.
func (p *process) table(heading ...string) *table {
	t := &table{tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)}
	t.row(heading...)
	return t
}

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		if cell == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t *table) flush() error { return t.w.Flush() }
