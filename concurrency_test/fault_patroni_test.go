//go:build gates && unix

package concurrency_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/migrations"
	"allocator/store/postgres"
	"allocator/store/postgres/embedded"
	"allocator/store/postgres/postgrestest"
)

// patroni is a cluster of two servers that Patroni keeps, over one etcd.
type patroni struct {
	t       *testing.T
	dir     string
	disks   int // MiB of a disk of its own for each member; 0: none has one
	etcd    *ward
	members []*member
	account *syscall.Credential // which PostgreSQL runs as; nil: ours
	bin     string
}

// member is one server with its Patroni.
type member struct {
	name string
	home string
	port int
	disk *smallDisk // nil: the data are in home
	ward *ward
}

// newPatroni starts one, and returns when it has a leader and a synchronous standby. It takes Debian's packages patroni
// and etcd-server, and root if each member is to have a disk of so many MiB.
func newPatroni(t *testing.T, disks int) *patroni {
	t.Helper()
	for _, needed := range []string{"patroni", "etcd"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not installed: install the packages patroni and etcd-server", needed)
		}
	}
	install, err := embedded.Newest(t.Context(), "")
	if err != nil {
		t.Skipf("a PostgreSQL of the test's own is needed: %v", err)
	}
	dir := postgrestest.Dir(t)
	p := &patroni{t: t, dir: dir, disks: disks, bin: install.Dir, account: unprivileged(t)}
	client, peer := freePort(t), freePort(t)
	p.etcd = startWard(t, nil, filepath.Join(dir, "etcd.log"), "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", local(client), "--advertise-client-urls", local(client), "--listen-peer-urls", local(peer),
		"--initial-advertise-peer-urls", local(peer), "--initial-cluster", "default="+local(peer))
	for _, name := range []string{"one", "two"} {
		p.members = append(p.members, p.member(name, client))
		p.elected(len(p.members) - 1)
	}
	return p
}

func local(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	return number
}

// unprivileged is the account that PostgreSQL runs as, where we are root.
func unprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("postgres")
	require.NoError(t, err)
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	require.NoError(t, err)
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	require.NoError(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// patroniSettings are those of one member. The times are the shortest that fit together.
const patroniSettings = `
scope: allocator
name: %[1]s
restapi: {listen: "127.0.0.1:%[2]d", connect_address: "127.0.0.1:%[2]d"}
etcd3: {host: "127.0.0.1:%[3]d"}
bootstrap:
  dcs:
    ttl: 6
    loop_wait: 1
    retry_timeout: 2
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: {wal_log_hints: "on", max_connections: 60, max_wal_size: 128MB}
  initdb: [{encoding: UTF8}, {locale: C}, data-checksums]
postgresql:
  listen: "127.0.0.1:%[4]d"
  connect_address: "127.0.0.1:%[4]d"
  data_dir: %[7]s/pgdata
  bin_dir: %[6]s
  pgpass: %[5]s/pgpass
  authentication:
    superuser: {username: allocator, password: secret}
    replication: {username: replicator, password: secret}
  parameters: {unix_socket_directories: "", fsync: "off"}
  pg_hba: ["host all allocator 127.0.0.1/32 scram-sha-256", "host replication replicator 127.0.0.1/32 scram-sha-256"]
watchdog: {mode: "off"}
`

func (p *patroni) member(name string, etcd int) *member {
	p.t.Helper()
	m := &member{name: name, home: filepath.Join(p.dir, name), port: freePort(p.t)}
	require.NoError(p.t, os.Mkdir(m.home, 0o700))
	config, data := filepath.Join(m.home, "patroni.yml"), m.home
	if p.disks > 0 {
		m.disk = newSmallDisk(p.t, p.disks)
		data = m.disk.mount
		require.NoError(p.t, os.Chown(m.disk.seen(), int(p.account.Uid), int(p.account.Gid)))
	}
	text := fmt.Sprintf(patroniSettings, name, freePort(p.t), etcd, m.port, m.home, p.bin, data)
	require.NoError(p.t, os.WriteFile(config, []byte(text), 0o600))
	if p.account != nil {
		for _, path := range []string{m.home, config} {
			require.NoError(p.t, os.Chown(path, int(p.account.Uid), int(p.account.Gid)))
		}
	}
	log := filepath.Join(p.dir, name+".log")
	if m.disk == nil {
		postgrestest.Watch(p.t, m.home)
		m.ward = startWard(p.t, p.account, log, "patroni", config)
		return m
	}
	words := append(m.disk.words(), "setpriv", fmt.Sprint("--reuid=", p.account.Uid), fmt.Sprint("--regid=", p.account.Gid), "--clear-groups", "patroni", config)
	m.ward = startWard(p.t, nil, log, words[0], words[1:]...)
	return m
}

// url goes to whichever member takes writes.
func (p *patroni) url(database string) string {
	hosts := make([]string, len(p.members))
	for i, m := range p.members {
		hosts[i] = fmt.Sprintf("127.0.0.1:%d", m.port)
	}
	return fmt.Sprintf("postgres://allocator:secret@%s/%s?sslmode=disable&target_session_attrs=read-write", strings.Join(hosts, ","), database)
}

// ask asks one member; an error is no answer.
func ask[T any](ctx context.Context, m *member, sql string) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://allocator:secret@127.0.0.1:%d/postgres?sslmode=disable", m.port))
	if err != nil {
		return answer, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return answer, conn.QueryRow(ctx, sql).Scan(&answer)
}

// elected waits until a member leads and has so many synchronous standbys.
func (p *patroni) elected(standbys int) *member {
	p.t.Helper()
	var leader *member
	require.Eventually(p.t, func() bool {
		for _, m := range p.members {
			ready, err := ask[bool](p.t.Context(), m, fmt.Sprintf(`SELECT NOT pg_is_in_recovery() AND (%d = 0 OR
				current_setting('synchronous_standby_names') <> '' AND EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync'))`, standbys))
			if err == nil && ready {
				leader = m
				return true
			}
		}
		return false
	}, 2*patience, 100*time.Millisecond, "nobody leads")
	return leader
}

// processes are the member's Patroni and its server.
func (m *member) processes() []int {
	pids := postgrestest.ProcessTree(m.ward.cmd.Process.Pid)
	text, err := os.ReadFile(filepath.Join(m.home, "pgdata", "postmaster.pid"))
	if err != nil {
		return pids
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if pid, err := strconv.Atoi(first); err == nil {
		pids = append(pids, postgrestest.ProcessTree(pid)...)
	}
	return pids
}

func (m *member) signal(s syscall.Signal) {
	for _, pid := range m.processes() {
		_ = syscall.Kill(pid, s) // some of them may have ended
	}
}

// Patroni keeps the cluster, and nothing that was acknowledged is lost. Its leader's machine hangs, and the synchronous
// standby takes over; when the old leader's machine goes on, it does not go on writing. Without etcd nobody may write, and
// callers are told so; with it back all goes on. While the leader's disk is full nobody is told that anything is
// sold, and with room again all goes on.
//
// Requirements: R03. Faults: F-F4.
func TestPatroni(t *testing.T) {
	t.Parallel()
	onlyLong(t)
	for name, c := range map[string]struct {
		disks   int
		happens func(p *patroni, l *load) (tried string)
	}{
		"its leader is frozen":      {0, leaderIsFrozen},
		"etcd is away":              {0, etcdIsAway},
		"its leader's disk is full": {400, leaderHasNoRoom},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: two clusters at once would be slow to elect
			p := newPatroni(t, c.disks)
			w := p.world()
			l := w.underLoad(p.url("faults"), 2, 2)
			l.until(30, toldHeld)
			tried := c.happens(p, l)
			w.at(p.url("faults"))
			require.Empty(t, l.lost(), "acknowledged, and gone")
			w.sound()
			t.Logf("tried: %s, %d acknowledgements, none lost (%s)", tried, len(l.acks), l)
		})
	}
}

// world is a database of the cluster with servers to sell.
func (p *patroni) world() *world {
	p.t.Helper()
	p.elected(1)
	admin, err := pgx.Connect(p.t.Context(), p.url("postgres"))
	require.NoError(p.t, err)
	_, err = admin.Exec(p.t.Context(), `CREATE DATABASE faults`)
	require.NoError(p.t, err)
	require.NoError(p.t, admin.Close(p.t.Context()))
	pool, err := postgres.Open(p.t.Context(), p.url("faults"), postgres.PoolOptions{})
	require.NoError(p.t, err)
	require.NoError(p.t, migrations.Up(p.t.Context(), pool, slog.New(slog.DiscardHandler)))
	pool.Close()
	return worldAt(p.t, p.url("faults"), 2000)
}

func leaderIsFrozen(p *patroni, l *load) string {
	leader := p.elected(1)
	leader.signal(syscall.SIGSTOP)
	frozen := time.Now()
	l.until(20, toldHeld)
	window := time.Since(frozen)
	follower := p.elected(0)
	require.NotEqual(p.t, leader.name, follower.name)
	leader.signal(syscall.SIGCONT)
	require.Eventually(p.t, func() bool {
		follows, err := ask[bool](p.t.Context(), leader, `SELECT pg_is_in_recovery()`)
		return err == nil && follows
	}, 2*patience, 100*time.Millisecond, "the old leader does not follow")
	p.elected(1)
	l.until(10, toldHeld)
	return fmt.Sprintf("1 leader frozen (others sold again after %s)", window.Round(time.Second))
}

func etcdIsAway(p *patroni, l *load) string {
	p.etcd.signal(syscall.SIGSTOP)
	l.until(20, toldNothing)
	p.etcd.signal(syscall.SIGCONT)
	p.elected(1)
	l.until(20, toldHeld)
	return "etcd away once"
}

// leaderHasNoRoom finds that Patroni, as of version 3, does not let another lead: it starts the leader again and again. So
// nothing is sold until somebody makes room.
func leaderHasNoRoom(p *patroni, l *load) string {
	leader := p.elected(1)
	ballast := leader.disk.fill()
	require.Eventually(p.t, func() bool { // so that room for the log is needed soon
		_, err := ask[string](p.t.Context(), leader, `SELECT pg_switch_wal()::text FROM pg_logical_emit_message(true, 'fault', repeat('x', 100000))`)
		return err != nil
	}, patience, 10*time.Millisecond)
	l.until(20, toldNothing)
	require.NoError(p.t, os.Remove(ballast))
	freed := time.Now()
	l.until(20, toldHeld)
	window := time.Since(freed)
	p.elected(1)
	return fmt.Sprintf("1 leader without room (sold again %s after there was some)", window.Round(time.Second))
}

// ward is a process that ends with the test, and with the test's own process.
type ward struct {
	t   *testing.T
	cmd *exec.Cmd
}

// startWard starts one under the account, with what it says in a file.
func startWard(t *testing.T, account *syscall.Credential, log, name string, args ...string) *ward {
	t.Helper()
	out, err := os.Create(log)
	require.NoError(t, err)
	path, err := exec.LookPath(name)
	require.NoError(t, err)
	s := &ward{t: t, cmd: exec.Command(path, args...)}
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = out, out, "/"
	s.cmd.SysProcAttr = dieWithUs()
	s.cmd.SysProcAttr.Credential = account
	started, ended := make(chan error, 1), make(chan struct{})
	go func() { // its thread lives as long as it does: the thread's death would be the process's
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
	}()
	require.NoError(t, <-started)
	t.Cleanup(func() {
		s.signal(syscall.SIGKILL)
		<-ended
		_ = out.Close()
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("%s wrote:\n%s", name, text[max(0, len(text)-5000):])
		}
	})
	return s
}

func (s *ward) signal(signal syscall.Signal) { _ = s.cmd.Process.Signal(signal) } // it may have ended
