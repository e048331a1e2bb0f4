//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"os/exec"
	"runtime"
)

// child is a started process that is being waited for.
type child struct {
	pid  int
	done chan struct{} // closed when the process has ended
	err  error         // of Wait; to be read after done
}

// startChild starts the command and waits for it in the background. Both happen
// on one thread that does nothing else: a parent death signal fires when the
// thread that forked ends, and the Go runtime ends threads as it likes.
func startChild(cmd *exec.Cmd) (*child, error) {
	c := &child{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.done)
		err := cmd.Start()
		if err == nil {
			c.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			c.err = cmd.Wait()
		}
	}()
	return c, <-started
}

// status says how the process ended; to be called after done.
func (c *child) status() string {
	if c.err != nil {
		return "ended: " + c.err.Error()
	}
	return "ended: exit status 0"
}
