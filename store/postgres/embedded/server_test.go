//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestDataOutlivesTheServer(t *testing.T) {
	t.Parallel()
	dir, first := stopped(t)
	<-first.Done()
	require.NoError(t, first.Err(), "a stop that was asked for is no death")

	second := start(t, dir)
	require.Equal(t, "still here", query(t, second, "SELECT word FROM kept"))
	require.Equal(t, first.password, second.password)
	require.NoError(t, second.Err())
}

func TestServerIsClosedToOthers(t *testing.T) {
	t.Parallel()
	server := start(t, dataDir(t))

	require.Equal(t, "127.0.0.1", query(t, server, "SHOW listen_addresses"))
	require.Empty(t, query(t, server, "SHOW unix_socket_directories"))
	require.Equal(t, "scram-sha-256", query(t, server, "SELECT DISTINCT auth_method FROM pg_hba_file_rules"))
	_, err := pgx.Connect(t.Context(), strings.Replace(server.URL(), server.password, "guess", 1))
	require.True(t, isDenied(err), "got %v", err)
	info, err := os.Stat(server.cluster.passwordFile())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestURLNamesTheDatabaseOnALocalPort(t *testing.T) {
	t.Parallel()
	server := start(t, dataDir(t))
	config, err := pgx.ParseConfig(server.URL())
	require.NoError(t, err)
	require.True(t, net.ParseIP(config.Host).IsLoopback())
	require.Equal(t, "allocator", query(t, server, "SELECT current_database()::text"))
	require.Equal(t, server.Version(), strings.Split(query(t, server, "SHOW server_version"), ".")[0])
}

func TestNothingIsLostUnlessATestSaysSo(t *testing.T) {
	t.Parallel()
	server, err := Start(t.Context(), Options{DataDir: dataDir(t), MaxConnections: 17})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.WithoutCancel(t.Context()))) })

	for setting, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "data_checksums": "on", "max_connections": "17",
	} {
		require.Equal(t, want, query(t, server, "SHOW "+setting), setting)
	}
}

func TestDeathOfTheServerIsReported(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := start(t, dir)
	query(t, server, "CREATE TABLE kept AS SELECT 'still here' AS word")

	require.NoError(t, syscall.Kill(server.child.pid, syscall.SIGKILL))
	<-server.Done()
	require.ErrorIs(t, server.Err(), ErrDied)
	require.NoError(t, server.Stop(t.Context()))
	require.ErrorIs(t, server.Err(), ErrDied, "a later Stop does not hide the death")
	requireDataKept(t, dir)
}

func TestStopEndsOpenTransactions(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := start(t, dir)
	query(t, server, "CREATE TABLE kept AS SELECT 'still here' AS word")
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "BEGIN; DELETE FROM kept")
	require.NoError(t, err)

	require.NoError(t, server.Stop(t.Context()))
	requireDataKept(t, dir)
}

func TestStopWithoutTimeLosesNothing(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := start(t, dir)
	query(t, server, "CREATE TABLE kept AS SELECT 'still here' AS word")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, server.Stop(ctx))
	<-server.Done()
	require.NoError(t, server.Err())
	requireDataKept(t, dir)
}

func TestStopMayBeCalledByMany(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := start(t, dir)
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() {
			if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	start(t, dir) // the directory is free
}

func TestOnlyTheLastTwoLogsAreKept(t *testing.T) {
	t.Parallel()
	dir, _ := stopped(t)
	for range 2 {
		require.NoError(t, start(t, dir).Stop(t.Context()))
	}
	logs, err := filepath.Glob(filepath.Join(dir, "postgres.log*"))
	require.NoError(t, err)
	require.Len(t, logs, 2)
}
