//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSecondInstanceIsRefused(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	process, postmaster := startHost(t, dir)

	_, err := Start(t.Context(), Options{DataDir: dir})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, "process "+strconv.Itoa(process.Process.Pid))
	require.True(t, alive(postmaster), "the first instance is unharmed")
}

func TestDirectoryIsOneUnderAllItsNames(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	start(t, dir)
	link := filepath.Join(filepath.Dir(dir), "link")
	require.NoError(t, os.Symlink(dir, link))

	_, err := Start(t.Context(), Options{DataDir: link})
	require.ErrorIs(t, err, ErrLocked)
}

func TestDataThatCannotBeServedIsRefused(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		spoil func(t *testing.T, c cluster)
		kind  error
		says  string
	}{
		"another major version": {
			func(t *testing.T, c cluster) { overwrite(t, c.data(), "PG_VERSION", "12\n") },
			ErrVersion, "written by version 12",
		},
		"a cluster without its version": {
			func(t *testing.T, c cluster) { require.NoError(t, os.Remove(filepath.Join(c.data(), "PG_VERSION"))) },
			ErrDamaged, "no PG_VERSION",
		},
		"the password is gone": {
			func(t *testing.T, c cluster) { require.NoError(t, os.Remove(c.passwordFile())) },
			ErrDamaged, "put the file back",
		},
		"the password is another one": {
			func(t *testing.T, c cluster) { overwrite(t, c.home, "password", "another\n") },
			ErrNotStarted, "put the right file back",
		},
		"the server refuses its configuration": {
			func(t *testing.T, c cluster) { overwrite(t, c.data(), "postgresql.conf", "work_mem = plenty\n") },
			ErrNotStarted, "invalid value for parameter \"work_mem\"",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			dir, server := stopped(t)
			c.spoil(t, server.cluster)

			_, err := Start(t.Context(), Options{DataDir: dir, FsyncOffForTests: true})
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.says)
			lock, err := takeLock(dir)
			require.NoError(t, err, "a refused start leaves the directory free")
			letGo(lock)
		})
	}
}

// TestLockIsKeptByAServerThatNobodyRefersTo collects a lock that its owner forgot: the server it stands for still runs.
func TestLockIsKeptByAServerThatNobodyRefersTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := takeLock(dir)
	require.NoError(t, err)
	for range 5 { // a finalizer runs some time after the collection
		runtime.GC()
		<-time.After(10 * time.Millisecond)
	}

	_, err = takeLock(dir)
	require.ErrorIs(t, err, ErrLocked)
}

func overwrite(t *testing.T, dir, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)) // keeps the owner
}

func TestInterruptedCreationIsBegunAgain(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	require.NoError(t, makeAll(filepath.Join(dir, "initdb-123", "base")))
	overwrite(t, dir, "password", "of the first attempt\n")

	server := start(t, dir)
	require.Equal(t, "1", query(t, server, "SELECT '1'"))
	require.NoDirExists(t, filepath.Join(dir, "initdb-123"))
}

func TestStartThatIsCalledOffLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	dir, before := stopped(t)
	log, err := openLog(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	server := &Server{cluster: before.cluster, opts: before.opts, password: before.password, log: log}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	require.ErrorIs(t, server.launch(ctx), ErrNotStarted)
	select {
	case <-server.child.done:
	default:
		t.Fatal("the server that was called off still runs")
	}
	requireDataKept(t, dir)
}

func TestParentThatCannotBeEnteredIsNamed(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(filepath.Dir(dataDir(t)), "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))
	home := filepath.Join(closed, "below", "postgres")
	require.NoError(t, makeAll(home))

	err := checkEnterable(home, account{name: "somebody", uid: os.Getuid() + 1, gid: os.Getgid() + 1})
	require.ErrorIs(t, err, ErrNotEnterable)
	require.ErrorContains(t, err, "somebody cannot enter "+closed+";")

	if os.Geteuid() == 0 {
		_, err = Start(t.Context(), Options{DataDir: home})
		require.ErrorIs(t, err, ErrNotEnterable)
	}
}

func TestWithoutADirectoryThereIsNoServer(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{})
	require.ErrorContains(t, err, "no data directory was given")
	file := filepath.Join(filepath.Dir(dataDir(t)), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Start(t.Context(), Options{DataDir: file})
	require.ErrorContains(t, err, "there is a file of that name")
}
