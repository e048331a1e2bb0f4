//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// hostEnv makes the test binary a program that runs a server in the directory
// named, says so, and waits to be killed.
const hostEnv = "EMBEDDED_TEST_HOST"

// hang bounds waits that would otherwise never end when something is broken.
const hang = 2 * time.Minute

func TestMain(m *testing.M) {
	if dir := os.Getenv(hostEnv); dir != "" {
		host(dir)
	}
	os.Exit(m.Run())
}

func host(dir string) {
	server, err := Start(context.Background(), Options{DataDir: dir, FsyncOffForTests: true})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println("pid:", server.child.pid)
	<-server.Done()
	os.Exit(2)
}

// startHost runs the test binary as a host and returns it with the pid of its server.
func startHost(t *testing.T, dir string) (process *exec.Cmd, postmaster int) {
	t.Helper()
	process = exec.Command(os.Args[0])
	process.Env = append(os.Environ(), hostEnv+"="+dir)
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	_, err = fmt.Fscanf(out, "pid: %d\n", &postmaster)
	require.NoError(t, err)
	return process, postmaster
}

// dataDir is a directory whose every parent the server's account can enter.
// The one the testing package makes is closed to others.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "embedded-test-") //nolint:usetesting // t.TempDir is closed to the server's account
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "postgres")
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	server, err := Start(t.Context(), Options{DataDir: dir, FsyncOffForTests: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.WithoutCancel(t.Context()))) })
	return server
}

// stopped is a directory whose server has run and was stopped.
func stopped(t *testing.T) (dir string, server *Server) {
	t.Helper()
	dir = dataDir(t)
	server = start(t, dir)
	query(t, server, "CREATE TABLE kept AS SELECT 'still here' AS word")
	require.NoError(t, server.Stop(t.Context()))
	return dir, server
}

func requireDataKept(t *testing.T, dir string) {
	t.Helper()
	require.Equal(t, "still here", query(t, start(t, dir), "SELECT word FROM kept"))
}

func query(t *testing.T, server *Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	rows, err := conn.Query(t.Context(), sql)
	require.NoError(t, err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(values, ",")
}
