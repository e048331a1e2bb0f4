package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// bouncerConfig has a pool far smaller than a service's own, so that sessions do change between transactions.
const bouncerConfig = `[databases]
%[1]s = host=%[2]s port=%[3]d user=%[4]s%[5]s dbname=%[1]s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %[6]d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
ignore_startup_parameters = statement_timeout,lock_timeout,idle_in_transaction_session_timeout,jit
`

// Bouncer starts pgbouncer in transaction mode before a database and returns the connection string through it. Where it is
// not installed the test is skipped. It goes away with the test.
func Bouncer(tb testing.TB, connection string) string {
	tb.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // where Debian puts it, for a PATH without it
	}
	if err != nil {
		tb.Skip("skipped: pgbouncer is not installed: run tools/setup.sh test")
	}
	port, config, err := settleBouncer(tb.TempDir(), connection)
	if err != nil {
		tb.Fatalf("no pgbouncer: %v", err)
	}
	arguments := []string{config}
	if os.Geteuid() == 0 {
		arguments = []string{"-u", "nobody", config} // it refuses to run as root
	}
	var said bytes.Buffer
	bouncer := exec.Command(program, arguments...) //nolint:noctx // it ends with the test, below
	bouncer.Stderr = &said
	if err := bouncer.Start(); err != nil {
		tb.Fatalf("no pgbouncer: %v", err)
	}
	tb.Cleanup(func() {
		_ = bouncer.Process.Kill()
		_ = bouncer.Wait()
		if tb.Failed() {
			tb.Log(said.String())
		}
	})
	through := throughPort(tb, connection, port)
	waitForAnswer(tb, through)
	return through
}

// settleBouncer writes the configuration.
func settleBouncer(dir, connection string) (port int, config string, err error) {
	behind, err := pgx.ParseConfig(connection)
	if err != nil {
		return 0, "", err
	}
	if port, err = freePort(); err != nil {
		return 0, "", err
	}
	password := ""
	if behind.Password != "" {
		password = " password='" + behind.Password + "'"
	}
	config = filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Appendf(nil, bouncerConfig, behind.Database, behind.Host, behind.Port, behind.User, password, port)
	return port, config, os.WriteFile(config, text, 0o600)
}

// throughPort leads the connection string to that port of this machine.
func throughPort(tb testing.TB, connection string, port int) string {
	tb.Helper()
	u, err := url.Parse(connection)
	if err != nil {
		tb.Fatalf("no pgbouncer: %v", err)
	}
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	return With(tb, u.String(), map[string]string{"sslmode": "disable"})
}

// waitForAnswer returns when a server answers.
func waitForAnswer(tb testing.TB, connection string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), setupTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, connection)
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("pgbouncer does not answer: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freePort is one at which nobody listens.
func freePort() (int, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close() //nolint:forcetypeassert // of a TCP listener
}
