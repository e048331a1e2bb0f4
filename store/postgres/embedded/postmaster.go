//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bounds of a shutdown. A fast one rolls transactions back and writes a
// checkpoint; an immediate one needs recovery at the next start. PostgreSQL
// itself kills children that ignore an immediate one after 5 seconds.
const (
	fastShutdown      = 20 * time.Second
	immediateShutdown = 15 * time.Second
)

// clearPredecessor makes the data directory free for a new server: an orphan is
// shut down, and a pid file whose number now belongs to some other process is
// removed, because PostgreSQL would take that process for a server. A pid file
// of a dead process is left: PostgreSQL judges it itself, and by it finds
// backends that survived their postmaster.
func (c cluster) clearPredecessor(ctx context.Context) (wasOrphaned bool, err error) {
	path := filepath.Join(c.data(), "postmaster.pid")
	pid, err := readPID(path)
	if err != nil || !alive(pid) {
		return false, nil //nolint:nilerr // without a file that can be read there is no predecessor
	}
	if isPostmasterOf(pid, c.data()) {
		return true, shutDown(ctx, pid, c.gone(pid))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("remove the stale %s: %w", path, err)
	}
	return false, nil
}

// gone is closed when the process no longer is the cluster's server.
func (c cluster) gone(pid int) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for isPostmasterOf(pid, c.data()) {
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return gone
}

func readPID(path string) (int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(content), "\n")
	return strconv.Atoi(strings.TrimSpace(first))
}

func alive(pid int) bool {
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// isPostmasterOf tells whether the process is a server started on data. The
// command line is asked, and not the working directory, because in a container
// even root may not read that of another user's process.
func isPostmasterOf(pid int, data string) bool {
	command := commandLine(pid)
	return strings.Contains(command, "postgres") && strings.Contains(command+" ", " -D "+data+" ")
}

func commandLine(pid int) string {
	if runtime.GOOS == "linux" {
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return strings.TrimRight(strings.ReplaceAll(string(content), "\x00", " "), " ")
	}
	out, _ := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output() //nolint:noctx // ps ends by itself
	return strings.TrimSpace(string(out))
}

// shutDown stops a server: fast, and immediately when the context ends or that
// takes too long. It returns when the server is gone.
func shutDown(ctx context.Context, pid int, gone <-chan struct{}) error {
	if err := signal(pid, syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	case <-time.After(fastShutdown):
	}
	if err := signal(pid, syscall.SIGQUIT); err != nil {
		return err
	}
	select {
	case <-gone:
		return nil
	case <-time.After(immediateShutdown):
		return fmt.Errorf("the PostgreSQL server, process %d, ignored an immediate shutdown; look at that process before starting again", pid)
	}
}

func signal(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("shut down the PostgreSQL server, process %d: %w", pid, err)
	}
	return nil
}
