//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// leavePIDFile makes the stopped server's directory look as if the process still served it.
func leavePIDFile(t *testing.T, server *Server, pid int) {
	t.Helper()
	path := filepath.Join(server.cluster.data(), "postmaster.pid")
	content := fmt.Sprintf("%d\n%s\n1700000000\n5432\n\n127.0.0.1\n  1 1\nready\n", pid, server.cluster.data())
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(t, server.cluster.account.own(path))
}

func TestPIDFileOfADeadProcessIsStale(t *testing.T) {
	t.Parallel()
	dir, server := stopped(t)
	dead := exec.Command("/bin/sh", "-c", "exit 0")
	require.NoError(t, dead.Run())
	leavePIDFile(t, server, dead.Process.Pid)
	requireDataKept(t, dir)
}

// The server's account owns the process in these two, or PostgreSQL itself would see through it.

func TestPIDFileIsStaleWhenAProgramHasTheNumber(t *testing.T) {
	t.Parallel()
	dir, server := stopped(t)
	program := server.cluster.command(t.Context(), "postgres")
	program.Path, program.Args = "/bin/sleep", []string{"sleep", "600"}
	running, err := startChild(program)
	require.NoError(t, err)
	t.Cleanup(func() { _ = program.Process.Kill(); <-running.done })
	leavePIDFile(t, server, running.pid)

	requireDataKept(t, dir)
	require.True(t, alive(running.pid), "an innocent process is left alone")
}

func TestPIDFileIsStaleWhenAnotherServerHasTheNumber(t *testing.T) {
	t.Parallel()
	other := start(t, dataDir(t))
	dir, server := stopped(t)
	leavePIDFile(t, server, other.child.pid)

	requireDataKept(t, dir)
	require.Equal(t, "1", query(t, other, "SELECT '1'"), "the other directory's server is left alone")
}

func TestOrphanIsShutDownAndReplaced(t *testing.T) {
	t.Parallel()
	dir, server := stopped(t)
	// As left by a process that was killed where the kernel tells no children.
	port, err := freePort()
	require.NoError(t, err)
	orphan, err := startChild(server.cluster.command(context.WithoutCancel(t.Context()), "postgres", server.arguments(port)...))
	require.NoError(t, err)
	server.port = port
	require.Eventually(t, func() bool { return server.prepare(t.Context()) == nil }, hang, 20*time.Millisecond)
	query(t, server, "UPDATE kept SET word = 'written to the orphan'")

	next := start(t, dir)
	select {
	case <-orphan.done:
	default:
		t.Fatal("the orphan still runs")
	}
	require.Equal(t, "written to the orphan", query(t, next, "SELECT word FROM kept"))
}

func TestKilledProcessLeavesNothingInTheWay(t *testing.T) {
	t.Parallel()
	dir, _ := stopped(t)
	process, postmaster := startHost(t, dir)
	require.NoError(t, process.Process.Kill())
	_ = process.Wait() // "signal: killed"
	if runtime.GOOS == "linux" {
		home, err := filepath.EvalSymlinks(dir)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return !isPostmasterOf(postmaster, filepath.Join(home, clusterName)) },
			hang, 20*time.Millisecond, "the kernel ends the server with its process")
	}
	requireDataKept(t, dir)
}

func TestKilledProcessIsSucceededAtOnce(t *testing.T) {
	t.Parallel()
	dir, _ := stopped(t)
	for range 3 {
		process, _ := startHost(t, dir)
		require.NoError(t, process.Process.Kill())
		_ = process.Wait()
		server := start(t, dir) // while the old server is on its way down
		require.Equal(t, "still here", query(t, server, "SELECT word FROM kept"))
		require.NoError(t, server.Stop(t.Context()))
	}
}

func TestBackendsThatSurviveTheirPostmasterAreWaitedFor(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := start(t, dir)
	query(t, server, "CREATE TABLE kept AS SELECT 'still here' AS word")
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	busy := make(chan error, 1)
	go func() { // a loop does not notice the end of the postmaster, its time limit ends it
		_, err := conn.Exec(context.WithoutCancel(t.Context()), "SET statement_timeout = '2s'; DO 'BEGIN LOOP END LOOP; END'")
		busy <- err
	}()
	require.Eventually(t, func() bool {
		return query(t, server, "SELECT count(*)::text FROM pg_stat_activity WHERE query LIKE 'SET%LOOP%' AND state = 'active'") == "1"
	}, hang, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(server.child.pid, syscall.SIGKILL))
	<-server.Done()
	require.NoError(t, server.Stop(t.Context()))

	requireDataKept(t, dir)
	require.Error(t, <-busy)
}
