//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package postgrestest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Standby is a copy of the node that follows it under that name, with these settings beside the node's.
func (n *Node) Standby(name string, settings map[string]string) *Node {
	n.tb.Helper()
	s := n.backup(name, "-R")
	maps.Copy(s.options.Settings, settings)
	s.Start()
	return s
}

// Backup is a copy of the node as it is now, not started and following nobody.
func (n *Node) Backup(name string) *Node {
	n.tb.Helper()
	return n.backup(name)
}

func (n *Node) backup(name string, more ...string) *Node {
	n.tb.Helper()
	options := n.options
	options.Home, options.Settings = "", maps.Clone(n.options.Settings)
	if options.Settings == nil {
		options.Settings = map[string]string{}
	}
	delete(options.Settings, "synchronous_standby_names")
	s := newNode(n.tb, name, options)
	s.fill(func() error { return s.copyOf(n, more...) })
	return s
}

// copyOf takes a base backup with everything that is needed to start it.
func (n *Node) copyOf(source *Node, more ...string) error {
	if err := os.Mkdir(n.home, 0o711); err != nil { // PostgreSQL's account enters it
		return err
	}
	if err := os.WriteFile(filepath.Join(n.home, "password"), []byte(source.password+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(n.data(), 0o700); err != nil {
		return err
	}
	if source.owner != nil {
		if err := os.Chown(n.data(), int(source.owner.Uid), int(source.owner.Gid)); err != nil {
			return err
		}
	}
	connection := fmt.Sprintf("host=%s port=%d user=%s password=%s application_name=%s sslmode=disable",
		source.options.Address, source.port, nodeRole, source.password, n.name)
	arguments := append([]string{"-D", n.data(), "-X", "stream", "-c", "fast", "--no-sync", "-d", connection}, more...)
	cmd := exec.CommandContext(n.tb.Context(), n.Bin("pg_basebackup"), arguments...)
	cmd.Dir, cmd.Env = n.home, []string{"LC_ALL=C", "HOME=" + n.home, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: source.owner}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	return n.readAccount()
}

// Own gives a file that the test put into its data to the account of the server.
func (n *Node) Own(name string) {
	n.tb.Helper()
	if n.owner == nil {
		return
	}
	if err := os.Chown(filepath.Join(n.data(), name), int(n.owner.Uid), int(n.owner.Gid)); err != nil {
		n.tb.Fatal(err)
	}
}

// Promote makes a standby a primary, and returns when it takes writes.
func (n *Node) Promote() {
	n.tb.Helper()
	n.exec("postgres", "SELECT pg_promote(true, 60)")
}

// Settle changes settings that count from the next start on.
func (n *Node) Settle(settings map[string]string) {
	if n.options.Settings == nil {
		n.options.Settings = map[string]string{}
	}
	maps.Copy(n.options.Settings, settings)
}

// Kill ends every process of the node at once, as the loss of its machine would.
func (n *Node) Kill() { n.end(syscall.SIGKILL) }

// Immediate stops the node as `pg_ctl stop -m immediate` does: it has to recover at its next start.
func (n *Node) Immediate() { n.end(syscall.SIGQUIT) }

// Stop stops the node in order.
func (n *Node) Stop() { n.end(syscall.SIGINT) }

func (n *Node) end(signal syscall.Signal) {
	if n.pid == 0 {
		return
	}
	pids := n.processes()
	if signal == syscall.SIGKILL {
		n.signal(syscall.SIGKILL, pids...)
	} else {
		n.signal(signal, n.server())
	}
	select {
	case <-n.gone:
	case <-time.After(nodePatience):
		n.tb.Errorf("the %s does not end", n.name)
	}
	n.pid = 0
}

// Freeze stops every process of the node where it is, as a machine that hangs does.
func (n *Node) Freeze() { n.signal(syscall.SIGSTOP, n.processes()...) }

// Thaw lets them go on.
func (n *Node) Thaw() { n.signal(syscall.SIGCONT, n.processes()...) }

// Gone is closed when the server's process has ended.
func (n *Node) Gone() <-chan struct{} { return n.gone }

func (n *Node) signal(signal syscall.Signal, pids ...int) {
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			n.tb.Errorf("signal %s to process %d of the %s: %v", signal, pid, n.name, err)
		}
	}
}

// server is the process of the server itself, which is a child of ours or, behind other words, the one that they became.
func (n *Node) server() int {
	pid, err := os.ReadFile(filepath.Join(n.data(), "postmaster.pid"))
	if err == nil {
		first, _, _ := strings.Cut(string(pid), "\n")
		if number, err := strconv.Atoi(first); err == nil && number > 0 {
			return number
		}
	}
	return n.pid
}

// processes are the server and its children, the server first.
func (n *Node) processes() []int {
	if n.pid == 0 {
		return nil
	}
	return ProcessTree(n.server())
}

// ProcessTree are a process and what descends from it, the process first.
func ProcessTree(pid int) []int {
	parents := map[int][]int{}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output() //nolint:noctx // ps ends by itself
	if err != nil {
		return []int{pid}
	}
	for line := range strings.Lines(string(out)) {
		var child, parent int
		if _, err := fmt.Sscan(line, &child, &parent); err == nil {
			parents[parent] = append(parents[parent], child)
		}
	}
	tree := []int{pid}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, parents[tree[i]]...)
	}
	return tree
}

// Watch makes the server whose data is in home/pgdata end, and home go away, with the test and with the test binary
// however that ends. It is for servers that somebody else starts.
func Watch(tb testing.TB, home string) {
	tb.Helper()
	pipe, err := startWatch(home)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = pipe.Close() })
}
