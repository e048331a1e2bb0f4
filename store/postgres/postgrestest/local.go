//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"allocator/store/postgres/embedded"
)

const localMaxConnections = 300

// startLocal runs a server from installed binaries on a copy of the prepared
// data directory and returns its URL. It ends with this process.
func startLocal(ctx context.Context) (string, error) {
	install, err := embedded.Newest(ctx, "")
	if err != nil {
		return "", err
	}
	base, err := baseDirectory()
	if err != nil {
		return "", err
	}
	// 1. A copy of the prepared directory; one test binary at a time prepares or copies.
	home, err := copyPrepared(ctx, base, install)
	if err != nil {
		return "", err
	}
	// 2. Somebody who cleans up after us, before there is a server.
	if err := watch(home); err != nil {
		return "", errors.Join(err, os.RemoveAll(home))
	}
	// 3. The server.
	running, err := embedded.Start(ctx, options(home, install))
	if err != nil {
		return "", err
	}
	return running.URL(), nil
}

func options(home string, install embedded.Installation) embedded.Options {
	return embedded.Options{DataDir: home, BinDir: install.Dir, MaxConnections: localMaxConnections, FsyncOffForTests: true}
}

// baseDirectory is this user's corner of the temporary directory. Others may
// enter it, not list it: run by root, the server has another account.
func baseDirectory() (string, error) {
	base := filepath.Join(os.TempDir(), "allocator-postgrestest-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(base, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make a directory for test servers: %w", err)
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", fmt.Errorf("make a directory for test servers: %w", err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s must be a directory of this user for its test servers; it is not, so remove it or set TMPDIR", base)
	}
	return base, os.Chmod(base, 0o711)
}

func copyPrepared(ctx context.Context, base string, install embedded.Installation) (string, error) {
	unlock, err := lock(base)
	if err != nil {
		return "", err
	}
	defer unlock()
	prepared, err := prepare(ctx, base, install)
	if err != nil {
		return "", fmt.Errorf("prepare a data directory for test servers: %w", err)
	}
	home := filepath.Join(base, runPrefix+strconv.Itoa(os.Getpid())+"-"+randomSuffix())
	if out, err := exec.CommandContext(ctx, "cp", "-Rp", prepared, home).CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("copy the prepared data directory: %w: %s", err, out), os.RemoveAll(home))
	}
	return home, nil
}

// lock waits until this test binary alone works in base.
func lock(base string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(base, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the test servers: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the directory of the test servers: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
