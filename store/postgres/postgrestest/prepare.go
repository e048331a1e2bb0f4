//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package postgrestest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"allocator/migrations"
	"allocator/store/postgres/embedded"
)

// Names in the base directory.
const (
	preparedPrefix = "prepared-" // a stopped cluster with the template database
	buildPrefix    = "build-"    // one that is being prepared
	runPrefix      = "run-"      // a test binary's copy of one
)

// keepPrepared is how long a data directory of other migrations is kept: long
// enough to go back and forth between branches.
const keepPrepared = 24 * time.Hour

// abandonedAfter is the age from which a run directory that nobody holds is
// taken for one whose watcher was killed too.
const abandonedAfter = 10 * time.Minute

// prepare returns a data directory with the template database in it, made at
// most once per content of the migrations. To be called under the lock.
func prepare(ctx context.Context, base string) (string, error) {
	prepared := filepath.Join(base, preparedPrefix+preparedKey())
	removeLeftovers(base, prepared)
	if _, err := os.Stat(prepared); err == nil {
		return prepared, os.Chtimes(prepared, time.Now(), time.Now())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	build := filepath.Join(base, buildPrefix+randomSuffix())
	if err := buildPrepared(ctx, build); err != nil {
		return "", errors.Join(err, os.RemoveAll(build))
	}
	return prepared, os.Rename(build, prepared)
}

func buildPrepared(ctx context.Context, home string) error {
	running, err := embedded.Start(ctx, options(home))
	if err != nil {
		return err
	}
	return errors.Join(ensureTemplate(ctx, running.URL(), templateName()), running.Stop(ctx))
}

// preparedKey also tells the binaries apart that were asked for.
func preparedKey() string {
	binaries := sha256.Sum256([]byte(os.Getenv(embedded.BinEnv)))
	return migrations.ContentHash() + "-" + hex.EncodeToString(binaries[:4])
}

// removeLeftovers removes what nobody uses. It is a courtesy to the disk, so a
// failure is left to the next test binary.
func removeLeftovers(base, current string) {
	entries, _ := os.ReadDir(base)
	for _, entry := range entries {
		path := filepath.Join(base, entry.Name())
		info, err := entry.Info()
		if err != nil || path == current {
			continue
		}
		age := time.Since(info.ModTime())
		switch {
		case strings.HasPrefix(entry.Name(), buildPrefix), // ours is the only one that builds
			strings.HasPrefix(entry.Name(), preparedPrefix) && age > keepPrepared,
			strings.HasPrefix(entry.Name(), runPrefix) && age > abandonedAfter && !held(path):
			_ = os.RemoveAll(path)
		}
	}
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
