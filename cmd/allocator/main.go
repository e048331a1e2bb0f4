package main

import (
	"context"
	"os"

	"github.com/mattn/go-isatty"
)

// version is set by the linker.
var version = "dev"

func main() {
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
