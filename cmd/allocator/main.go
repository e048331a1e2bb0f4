package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/mattn/go-isatty"
)

// version is set by the linker.
var version = "dev"

// gcPercent is how much of what lives in memory may be added to it before garbage is collected. What lives is mostly the
// catalog, some 300 bytes for each server, and collecting at 100 % was a tenth of the process's time. GOGC says otherwise.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	stderr := newSteadyWriter(os.Stderr)
	code := execute(context.Background(), &process{
		stdin:     os.Stdin,
		stdout:    os.Stdout,
		stderr:    stderr,
		lookupEnv: os.LookupEnv,
		terminal:  isatty.IsTerminal(os.Stderr.Fd()),
	}, os.Args[1:])
	stderr.flush()
	os.Exit(code)
}
