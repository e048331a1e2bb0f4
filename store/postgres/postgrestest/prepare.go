//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package postgrestest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"allocator/store/postgres/embedded"
)

// Names in the base directory.
const (
	preparedPrefix = "prepared-" // a stopped cluster with the template database
	buildPrefix    = "build-"    // one that is being prepared
	runPrefix      = "run-"      // a test binary's copy of one
)

// prepare returns a data directory with the template database in it, made at
// most once per template and installation of PostgreSQL. To be
// called under the lock.
func prepare(ctx context.Context, base string, install embedded.Installation) (string, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", templateName(), install.Major, install.Dir))
	prepared := filepath.Join(base, fmt.Sprintf("%s%x", preparedPrefix, key[:8]))
	removeLeftovers(base, prepared)
	if _, err := os.Stat(prepared); err == nil {
		return prepared, os.Chtimes(prepared, time.Now(), time.Now())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	build := filepath.Join(base, buildPrefix+randomSuffix())
	if err := buildPrepared(ctx, build, install); err != nil {
		return "", errors.Join(err, os.RemoveAll(build))
	}
	return prepared, os.Rename(build, prepared)
}

func buildPrepared(ctx context.Context, home string, install embedded.Installation) error {
	running, err := embedded.Start(ctx, options(home, install))
	if err != nil {
		return err
	}
	return errors.Join(ensureTemplate(ctx, running.URL(), templateName()), running.Stop(ctx))
}
