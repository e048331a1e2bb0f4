//go:build gates && unix

package concurrency_test

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tethered is a helper process that reads its input until it ends: it goes when the test lets go of it, and when the
// test's own process is gone.
type tethered struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.Closer
	lines chan string
	wrote bytes.Buffer
}

// tether starts one. Without the program the test is skipped.
func tether(t *testing.T, name string, args ...string) *tethered {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	h := &tethered{t: t, cmd: exec.Command(path, args...), lines: make(chan string, 100)}
	h.cmd.Stderr = &h.wrote
	input, err := h.cmd.StdinPipe()
	require.NoError(t, err)
	output, err := h.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, h.cmd.Start())
	h.input = input
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(h.lines)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			h.lines <- lines.Text()
		}
		_ = h.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = input.Close()
		<-ended
	})
	return h
}

// says waits for the line; a helper that ends without it cannot work here, and the test is skipped.
func (h *tethered) says(want, otherwise string) {
	h.t.Helper()
	select {
	case line, more := <-h.lines:
		if !more {
			h.t.Skip(otherwise)
		}
		require.Equal(h.t, want, line)
	case <-time.After(patience):
		require.FailNow(h.t, "a helper does not start")
	}
}

func (h *tethered) pid() int { return h.cmd.Process.Pid }
