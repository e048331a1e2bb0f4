package main

import (
	"context"
	"os"

	"github.com/mattn/go-isatty"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(execute(context.Background(), &process{
		stdin:     os.Stdin,
		stdout:    os.Stdout,
		stderr:    os.Stderr,
		lookupEnv: os.LookupEnv,
		terminal:  isatty.IsTerminal(os.Stderr.Fd()),
	}, os.Args[1:]))
}
