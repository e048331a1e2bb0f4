package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// errEnded is what became of a program that was not done in its time.
var errEnded = errors.New("not done in its time")

// command runs a program in a folder and returns what it wrote. An exit code is no error here: its output tells more.
// When its time is over it is told to quit, upon which a Go program tells where it was.
func command(ctx context.Context, dir string, environment []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // names and arguments out of our own tables
	c.Dir, c.Env = dir, append(os.Environ(), environment...)
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(syscall.SIGQUIT) }, 10*time.Second
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return string(out), errEnded
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	return string(out), err
}
