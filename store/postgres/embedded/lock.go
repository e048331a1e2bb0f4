//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// takeLock makes this process the only one that may run the server of home. The
// kernel lets go of the lock when the process ends, however it ends; the file
// stays. Its content, the holder's pid, is for people.
func takeLock(home string) (*os.File, error) {
	path := filepath.Join(home, "lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data directory: %w; run as the user that created it or choose another data directory", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s%s; stop that process, or give this one its own data directory or a database URL", ErrLocked, home, holder(path))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := errors.Join(file.Truncate(0), writePID(file)); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	locks.Store(file, struct{}{})
	return file, nil
}

// locks are the files of the locks that this process has: a file that nothing refers to is collected, and closed by
// that, so a caller that lets its Server out of sight would lose the lock while the server runs.
var locks sync.Map

func letGo(lock *os.File) {
	locks.Delete(lock)
	_ = lock.Close()
}

func writePID(file *os.File) error {
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(path string) string {
	content, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(content)); err == nil && pid != "" {
		return " is served by process " + pid
	}
	return ""
}
