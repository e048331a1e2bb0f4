//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package postgrestest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"allocator/store/postgres/embedded"
)

// nodeDatabase is the migrated database of every node, and nodeRole its superuser.
const (
	nodeDatabase = "faults"
	nodeRole     = "allocator"
)

// nodePatience bounds what a node is waited for.
const nodePatience = 60 * time.Second

// NodeOptions settle how a node runs. Zero fields take the defaults.
type NodeOptions struct {
	Settings map[string]string // of PostgreSQL, on its command line
	Env      []string          // of its process, beside what it always has
	Home     string            // where its data lies; default a directory of its own
	Inside   string            // what its own process calls Home, where that differs
	Address  string            // where it listens; default 127.0.0.1
	Before   []string          // words before its command, such as "ip netns exec name"
}

// Node is a PostgreSQL server of one test alone: it may be killed, frozen, copied, promoted, given another clock or a
// small disk. It goes away with the test, and with the test binary however that ends. It is used by one goroutine.
type Node struct {
	tb       testing.TB
	options  NodeOptions
	name     string // of its sessions, where it is a standby
	install  embedded.Installation
	home     string
	password string
	port     int
	owner    *syscall.Credential // nil: our own
	pid      int
	gone     chan struct{} // closed when its process has ended
}

// NewNode starts a server with one migrated database. Without installed binaries the test is skipped.
func NewNode(tb testing.TB, options NodeOptions) *Node {
	tb.Helper()
	n := newNode(tb, "primary", options)
	n.fill(n.copyPrepared)
	n.Start()
	n.exec("postgres", "CREATE DATABASE "+nodeDatabase+" TEMPLATE "+templateName())
	return n
}

func newNode(tb testing.TB, name string, options NodeOptions) *Node {
	tb.Helper()
	install, err := embedded.Newest(tb.Context(), "")
	if err != nil {
		tb.Skipf("a PostgreSQL of the test's own is needed: %v", err)
	}
	if options.Address == "" {
		options.Address = "127.0.0.1"
	}
	n := &Node{tb: tb, options: options, name: name, install: install, home: options.Home}
	if n.port, err = freePort(); err != nil {
		tb.Fatal(err)
	}
	return n
}

// fill makes the data, and sees to it that it goes away.
func (n *Node) fill(with func() error) {
	n.tb.Helper()
	if n.home == "" {
		base, err := baseDirectory()
		if err != nil {
			n.tb.Fatal(err)
		}
		n.home = filepath.Join(base, fmt.Sprintf("%snode-%d-%s", runPrefix, os.Getpid(), randomSuffix()))
	}
	pipe, err := startWatch(n.home)
	if err != nil {
		n.tb.Fatal(err)
	}
	var lock *os.File
	n.tb.Cleanup(func() {
		n.Kill()
		if n.tb.Failed() {
			n.tb.Logf("the log of the %s:\n%s", n.name, n.logTail())
		}
		_ = os.RemoveAll(n.home)
		_ = pipe.Close()
		_ = lock.Close() // of nil: an error, and nothing else
	})
	if err := with(); err != nil {
		n.tb.Fatalf("make the data of a node: %v", err)
	}
	if lock, err = hold(n.home); err != nil {
		n.tb.Fatalf("hold the directory of a node: %v", err)
	}
}

// copyPrepared takes the data of which every test server is a copy.
func (n *Node) copyPrepared() error {
	base, err := baseDirectory()
	if err != nil {
		return err
	}
	unlock, err := lock(base)
	if err != nil {
		return err
	}
	defer unlock()
	prepared, err := prepare(n.tb.Context(), base, n.install)
	if err != nil {
		return err
	}
	source := prepared
	if _, err := os.Stat(n.home); err == nil { // a directory that is there already, such as a small disk
		source += "/."
	}
	if out, err := exec.CommandContext(n.tb.Context(), "cp", "-Rp", source, n.home).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := n.readAccount(); err != nil {
		return err
	}
	rules := "host all all all scram-sha-256\n" + "host replication all all scram-sha-256\n" //nolint:dupword // that is how it is said
	return os.WriteFile(filepath.Join(n.data(), "pg_hba.conf"), []byte(rules), 0o600)
}

// readAccount reads the password and whose the data is: PostgreSQL does not run as root.
func (n *Node) readAccount() error {
	password, err := os.ReadFile(filepath.Join(n.home, "password"))
	if err != nil {
		return err
	}
	n.password = strings.TrimSpace(string(password))
	info, err := os.Stat(n.data())
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		n.owner = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	return nil
}

func (n *Node) data() string { return filepath.Join(n.home, "pgdata") }

// DataDir is the directory of its cluster.
func (n *Node) DataDir() string { return n.data() }

// Owner is the account that its process runs as; nil means ours.
func (n *Node) Owner() *syscall.Credential { return n.owner }

// Bin is the path of one of PostgreSQL's programs.
func (n *Node) Bin(program string) string { return filepath.Join(n.install.Dir, program) }

// Password is that of its superuser, who is called allocator, on a standby as on its primary.
func (n *Node) Password() string { return n.password }

// Port is where it listens; it stays the same.
func (n *Node) Port() int { return n.port }

// URL is the connection string of its migrated database.
func (n *Node) URL() string { return n.url(nodeDatabase) }

func (n *Node) url(database string) string {
	address := net.JoinHostPort(n.options.Address, strconv.Itoa(n.port))
	u := url.URL{Scheme: "postgres", User: url.UserPassword(nodeRole, n.password), Host: address, Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// URLOf is a connection string that goes to whichever of the nodes may be written to.
func URLOf(nodes ...*Node) string {
	hosts := make([]string, len(nodes))
	for i, n := range nodes {
		hosts[i] = net.JoinHostPort(n.options.Address, strconv.Itoa(n.port))
	}
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable&target_session_attrs=read-write",
		nodeRole, nodes[0].password, strings.Join(hosts, ","), nodeDatabase)
}

// Start runs the server and returns when it answers.
func (n *Node) Start() {
	n.tb.Helper()
	if err := n.TryStart(n.tb.Context()); err != nil {
		n.tb.Fatalf("start the %s: %v; %s", n.name, err, n.logTail())
	}
}

// TryStart is Start for a server that may be unable to.
func (n *Node) TryStart(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(n.home, "node.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	words := slices.Concat(n.options.Before, n.asOwner(), []string{n.Bin("postgres")}, n.arguments())
	cmd := exec.Command(words[0], words[1:]...) //nolint:noctx // it outlives every context, and is ended by name
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.home, log, log
	cmd.Env = append([]string{"LC_ALL=C", "TZ=UTC", "HOME=" + n.home, "PATH=" + os.Getenv("PATH")}, n.options.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if len(n.options.Before) == 0 {
		cmd.SysProcAttr.Credential = n.owner
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	n.pid, n.gone = cmd.Process.Pid, gone
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		_ = log.Close()
		close(gone)
	}()
	return n.ready(ctx)
}

// asOwner are the words with which a command that has to begin as root becomes the data's owner.
func (n *Node) asOwner() []string {
	if len(n.options.Before) == 0 || n.owner == nil {
		return nil
	}
	return []string{"setpriv", "--reuid", fmt.Sprint(n.owner.Uid), "--regid", fmt.Sprint(n.owner.Gid), "--clear-groups"}
}

func (n *Node) arguments() []string {
	settings := map[string]string{
		"listen_addresses": n.options.Address, "unix_socket_directories": "", "port": strconv.Itoa(n.port),
		"max_connections": "60", "fsync": "off", "log_destination": "stderr", "logging_collector": "off",
		"wal_keep_size": "64MB", "wal_retrieve_retry_interval": "200ms",
	}
	maps.Copy(settings, n.options.Settings)
	arguments := []string{"-D", filepath.Join(cmp.Or(n.options.Inside, n.home), "pgdata")}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		arguments = append(arguments, "-c", name+"="+settings[name])
	}
	return arguments
}

// ready returns when the server lets somebody in, or has ended.
func (n *Node) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, nodePatience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, n.url("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-n.gone:
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (n *Node) exec(database string, statements ...string) {
	n.tb.Helper()
	conn, err := pgx.Connect(n.tb.Context(), n.url(database))
	if err != nil {
		n.tb.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(n.tb.Context())) }()
	if err := execute(n.tb.Context(), conn, statements...); err != nil {
		n.tb.Fatal(err)
	}
}

func (n *Node) logTail() string {
	log, _ := os.ReadFile(filepath.Join(n.home, "node.log"))
	return string(log[max(0, len(log)-4000):])
}

// Log is what the server has written since it was made.
func (n *Node) Log() string {
	log, _ := os.ReadFile(filepath.Join(n.home, "node.log"))
	return string(log)
}
