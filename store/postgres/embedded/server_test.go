//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// dataDir is a directory whose every parent the server's account can enter.
// The one the testing package makes is closed to others.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "embedded-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "postgres")
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	server, err := Start(t.Context(), Options{DataDir: dir, FsyncOffForTests: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	return server
}

func query(t *testing.T, server *Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	rows, err := conn.Query(t.Context(), sql)
	require.NoError(t, err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(values, ",")
}

func TestDataOutlivesTheServer(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)

	first := start(t, dir)
	require.Equal(t, "allocator", query(t, first, "SELECT current_database()::text"))
	query(t, first, "CREATE TABLE kept AS SELECT 'still here' AS word")
	password := first.password
	require.NoError(t, first.Stop(t.Context()))
	<-first.Done()
	require.NoError(t, first.Err(), "a stop that was asked for is no death")

	second := start(t, dir)
	require.Equal(t, "still here", query(t, second, "SELECT word FROM kept"))
	require.Equal(t, password, second.password)
}

func TestServerIsClosedToOthers(t *testing.T) {
	t.Parallel()
	server := start(t, dataDir(t))

	require.Equal(t, "127.0.0.1", query(t, server, "SHOW listen_addresses"))
	require.Equal(t, "", query(t, server, "SHOW unix_socket_directories"))
	require.Equal(t, "scram-sha-256", query(t, server, "SELECT DISTINCT auth_method FROM pg_hba_file_rules"))
	require.Equal(t, "on", query(t, server, "SHOW data_checksums"))
	_, err := pgx.Connect(t.Context(), strings.Replace(server.URL(), server.password, "guess", 1))
	require.True(t, isDenied(err), "got %v", err)
	info, err := os.Stat(server.cluster.passwordFile())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestFsyncIsOnUnlessATestSaysOtherwise(t *testing.T) {
	t.Parallel()
	server, err := Start(t.Context(), Options{DataDir: dataDir(t), MaxConnections: 17})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })

	require.Equal(t, "on", query(t, server, "SHOW fsync"))
	require.Equal(t, "on", query(t, server, "SHOW synchronous_commit"))
	require.Equal(t, "17", query(t, server, "SHOW max_connections"))
}

func TestSecondInstanceIsRefused(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := start(t, dir)

	_, err := Start(t.Context(), Options{DataDir: dir})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, "process "+strconv.Itoa(os.Getpid()))
	require.Equal(t, "1", query(t, server, "SELECT '1'"), "the first instance is unharmed")
}

func TestDeathOfTheServerIsReported(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := start(t, dir)
	query(t, server, "CREATE TABLE kept AS SELECT 'still here' AS word")
	port := server.port

	require.NoError(t, syscall.Kill(server.child.pid, syscall.SIGKILL))
	<-server.Done()
	require.ErrorIs(t, server.Err(), ErrDied)
	require.NoError(t, server.Stop(t.Context()))
	require.ErrorIs(t, server.Err(), ErrDied, "a later Stop does not hide the death")

	again := start(t, dir)
	require.Equal(t, "still here", query(t, again, "SELECT word FROM kept"))
	require.NotZero(t, port)
}

func TestPidFileOfAnotherProcessIsStale(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := start(t, dir)
	require.NoError(t, server.Stop(t.Context()))

	// A living process of the server's own account now has the number.
	sleeper := server.cluster.command(t.Context(), "postgres")
	sleeper.Path, sleeper.Args = "/bin/sleep", []string{"sleep", "600"}
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	pidFile := filepath.Join(server.cluster.data(), "postmaster.pid")
	content := strconv.Itoa(sleeper.Process.Pid) + "\n" + server.cluster.data() + "\n1700000000\n5432\n\n127.0.0.1\n  1 1\nready\n"
	require.NoError(t, os.WriteFile(pidFile, []byte(content), 0o600))
	require.NoError(t, server.cluster.account.own(pidFile))

	again := start(t, dir)
	require.Equal(t, "1", query(t, again, "SELECT '1'"))
	require.True(t, alive(sleeper.Process.Pid), "the innocent process is left alone")
}

func TestPidFileOfADeadProcessIsStale(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := start(t, dir)
	require.NoError(t, server.Stop(t.Context()))

	dead := exec.Command("/bin/sh", "-c", "exit 0")
	require.NoError(t, dead.Run())
	pidFile := filepath.Join(server.cluster.data(), "postmaster.pid")
	require.NoError(t, os.WriteFile(pidFile, []byte(strconv.Itoa(dead.Process.Pid)+"\n"), 0o600))
	require.NoError(t, server.cluster.account.own(pidFile))

	require.Equal(t, "1", query(t, start(t, dir), "SELECT '1'"))
}

func TestInterruptedCreationIsBegunAgain(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "initdb-123", "base"), 0o711))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "password"), []byte("of the first attempt\n"), 0o600))
	require.NoError(t, os.Chmod(dir, 0o711))

	server := start(t, dir)
	require.Equal(t, "1", query(t, server, "SELECT '1'"))
	require.NoDirExists(t, filepath.Join(dir, "initdb-123"))
}

func TestOldLogIsPutAside(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	for range 3 {
		server := start(t, dir)
		require.NoError(t, server.Stop(t.Context()))
	}
	logs, err := filepath.Glob(filepath.Join(dir, "postgres.log*"))
	require.NoError(t, err)
	require.Len(t, logs, 2)
}

func TestURLNamesALocalPort(t *testing.T) {
	t.Parallel()
	server := start(t, dataDir(t))
	config, err := pgx.ParseConfig(server.URL())
	require.NoError(t, err)
	require.True(t, net.ParseIP(config.Host).IsLoopback())
	require.Equal(t, server.Version(), strings.Split(query(t, server, "SHOW server_version"), ".")[0])
}
