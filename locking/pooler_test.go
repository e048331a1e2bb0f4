package locking

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// Behind a pooler the session of a lock would go to others together with the lock. It is recognised, at start-up and
// again at each try, and no lock is taken.
//
// Requirements: L21. Faults: F-N5.
func TestPostgresRefusesAPooler(t *testing.T) {
	t.Parallel()
	for name, pooler := range map[string]func(t *testing.T, address string) string{
		"pgbouncer in transaction mode": pgbouncer,
		"what any pooler does":          poolerLike,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := postgrestest.EmptyURL(t)
			pooled := pooler(t, address)
			l := openPostgres(t, PostgresConfig{URL: pooled})
			require.ErrorIs(t, l.Check(t.Context()), ErrPooled)
			h, err := l.Try(t.Context(), "key", long)
			require.Nil(t, h)
			require.ErrorIs(t, err, ErrPooled)
			require.ErrorIs(t, err, ErrBackend)
			require.Zero(t, read[int](t, connectTo(t, address), heldLocks))

			opened, err := Open(t.Context(), Config{Backend: BackendPostgres, PG: PostgresConfig{URL: pooled}}, silent)
			require.Nil(t, opened)
			require.ErrorIs(t, err, ErrPooled)
			require.ErrorContains(t, err, "give it the address of PostgreSQL itself")
		})
	}
}

// A proxy that only passes bytes on is no pooler.
//
// Requirements: L21.
func TestPostgresThroughAProxyIsFine(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	l := openPostgres(t, PostgresConfig{URL: throughProxy(t, address, newProxy(t, hostOf(t, address)))})
	require.NoError(t, l.Check(t.Context()))
	take(t, l, "key", long)
}

// poolerLike names another process at the opening of a session than the one that answers later. Clients need that name
// to cancel statements, so a pooler has to give out one of its own.
func poolerLike(t *testing.T, address string) string {
	t.Helper()
	p := newProxy(t, hostOf(t, address))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = func(text []byte) []byte {
		name := bytes.Index(text, []byte("K\x00\x00\x00\x0c"))
		if name < 0 {
			return text
		}
		text = bytes.Clone(text)
		text[name+5] ^= 0xd5 // the first byte of the process's number, which poolers draw from all 32 bits
		return text
	}
	return throughProxy(t, address, p)
}

func pgbouncer(t *testing.T, address string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // where Debian puts it, for a PATH without it
	}
	if err != nil {
		t.Skip("skipped: pgbouncer is not installed")
	}
	behind, err := pgx.ParseConfig(address)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	port := listener.Addr().(*net.TCPAddr).Port
	password := ""
	if behind.Password != "" {
		password = fmt.Sprintf(" password='%s'", behind.Password)
	}
	config := filepath.Join(t.TempDir(), "pgbouncer.ini")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
%[1]s = host=%[2]s port=%[3]d user=%[4]s%[5]s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %[6]d
unix_socket_dir =
auth_type = any
pool_mode = transaction
`, behind.Database, behind.Host, behind.Port, behind.User, password, port), 0o600))
	arguments := []string{config}
	if os.Geteuid() == 0 {
		arguments = []string{"-u", "nobody", config} // it refuses to run as root
	}
	command := exec.Command(program, arguments...)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	pooled := fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", behind.User, port, behind.Database)
	eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), pooled)
		return err == nil && conn.Close(t.Context()) == nil
	}, "pgbouncer answers")
	return pooled
}
