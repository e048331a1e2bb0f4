//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const clusterName = "pgdata"

// resolve returns the one true path of dir, so that two spellings of a
// directory are one to the lock and to the search for a running server. The
// directory is created when it is missing.
func resolve(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no data directory was given for PostgreSQL; set one")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data directory %s: %w", dir, err)
	}
	if err := makeAll(abs); err != nil {
		return "", fmt.Errorf("create data directory %s: %w", abs, err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", fmt.Errorf("data directory %s: %w", dir, err)
	}
	return abs, nil
}

// makeAll is os.MkdirAll with two differences: what it creates can be entered
// (though not listed) by the server's account whatever the umask says, and the
// last directory is ours to fill but not to give away.
func makeAll(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return errors.New("there is a file of that name")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(dir, 0o711)
}

// checkEnterable names the first directory on the way to home that the account cannot enter.
func checkEnterable(home string, a account) error {
	for _, dir := range pathsDownTo(home) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotEnterable, err)
		}
		if !a.canEnter(info) {
			return fmt.Errorf("%w: %s cannot enter %s; allow it (chmod o+x %s) or choose a data directory elsewhere, such as below /var/lib",
				ErrNotEnterable, a.name, dir, dir)
		}
	}
	return nil
}

func pathsDownTo(dir string) []string {
	if parent := filepath.Dir(dir); parent != dir {
		return append(pathsDownTo(parent), dir)
	}
	return []string{dir}
}
