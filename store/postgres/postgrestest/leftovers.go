//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package postgrestest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	// keepPrepared is how many data directories of other migrations are kept: some
	// 70 MB each, enough to go back and forth between branches.
	keepPrepared = 3
	// abandonedAfter is the age from which a run directory that nobody holds is
	// taken for one whose watcher was killed too.
	abandonedAfter = 10 * time.Minute
)

// removeLeftovers removes what nobody uses, to be called under the lock. It is a
// courtesy to the disk, so a failure is left to the next test binary.
func removeLeftovers(base, current string) {
	for _, build := range newestFirst(base, buildPrefix) { // nobody builds but who holds the lock
		_ = os.RemoveAll(build.path)
	}
	for _, run := range newestFirst(base, runPrefix) {
		if time.Since(run.modified) > abandonedAfter && !held(run.path) {
			_ = os.RemoveAll(run.path)
		}
	}
	others := slices.DeleteFunc(newestFirst(base, preparedPrefix), func(e entry) bool { return e.path == current })
	for _, old := range others[min(keepPrepared, len(others)):] {
		_ = os.RemoveAll(old.path)
	}
}

// entry is a directory in the base directory.
type entry struct {
	path     string
	modified time.Time
}

func newestFirst(base, prefix string) []entry {
	paths, _ := filepath.Glob(filepath.Join(base, prefix+"*")) // fails on a malformed pattern only
	var entries []entry
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			entries = append(entries, entry{path, info.ModTime()})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return b.modified.Compare(a.modified) })
	return entries
}

// hold takes the lock of a run directory for as long as the file is open.
func hold(home string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return file, syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// held tells whether a test binary runs the server of this directory.
func held(home string) bool {
	file, err := os.Open(filepath.Join(home, "lock"))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = file.Close() }()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
