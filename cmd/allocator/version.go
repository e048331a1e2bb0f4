package main

import (
	"fmt"
	"runtime"

	"allocator/migrations"
)

// versionCmd tells which release this is, and which schema it needs.
type versionCmd struct{}

func (versionCmd) examples() string { return "allocator version" }

// Run implements the command.
func (versionCmd) Run(p *process) error {
	if p.json {
		return p.printJSON(map[string]any{"version": version, "schema": migrations.Latest(), "go": runtime.Version()})
	}
	fmt.Fprintf(p.stdout, "allocator %s (schema %d, %s)\n", version, migrations.Latest(), runtime.Version())
	return nil
}
