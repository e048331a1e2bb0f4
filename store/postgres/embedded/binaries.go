//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the oldest major version of PostgreSQL the service supports.
const oldestMajor = 15

// Installation is a directory with the programs postgres and initdb in it, and
// the major version they say they have.
type Installation struct {
	Dir   string
	Major int
}

// Newest is the installation Start would choose for a new data directory, given
// the same Options.BinDir. Its error wraps ErrNoBinaries.
func Newest(ctx context.Context, binDir string) (Installation, error) {
	found, err := findInstallations(ctx, Options{BinDir: binDir}.binDir())
	if err != nil {
		return Installation{}, err
	}
	return found[0], nil
}

// places are where packages put the server, beside what PATH and pg_config say.
var places = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                   // the PostgreSQL project's own RPMs
	"/usr/libexec/postgresql*",                           // Alpine
	"/usr/lib/postgresql*/bin",                           // SUSE
	"/usr/local/pgsql/bin",                               // built from source
	"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew, Apple silicon
	"/usr/local/opt/postgresql*/bin",                     // Homebrew, Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",     // Homebrew, Linux
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	"/opt/local/lib/postgresql*/bin",                     // MacPorts
}

// findInstallations returns every usable installation, newest first.
// A directory that was asked for is the only one considered.
func findInstallations(ctx context.Context, override string) ([]Installation, error) {
	dirs, searched := candidates(ctx, places), "PATH, pg_config and the usual places"
	if override != "" {
		dirs, searched = []string{override}, override
	}
	found, tooOld := usable(ctx, dirs)
	if len(found) == 0 {
		return nil, noBinaries(searched, tooOld)
	}
	return found, nil
}

// usable sorts out directories without a server, or with one that is too old or
// does not run here. The newest comes first, of equals the one named first.
func usable(ctx context.Context, dirs []string) (found []Installation, tooOld []string) {
	for _, dir := range dirs {
		major, err := majorOf(ctx, dir)
		switch {
		case err != nil:
		case major < oldestMajor:
			tooOld = append(tooOld, fmt.Sprintf("version %d in %s", major, dir))
		default:
			found = append(found, Installation{dir, major})
		}
	}
	slices.SortStableFunc(found, func(a, b Installation) int { return cmp.Compare(b.Major, a.Major) })
	return found, tooOld
}

func noBinaries(searched string, tooOld []string) error {
	older := ""
	if len(tooOld) > 0 {
		older = " (" + strings.Join(tooOld, ", ") + " is too old)"
	}
	return fmt.Errorf("%w: looked in %s for version %d or newer%s; %s, or set %s to the directory of its binaries, or ALLOCATOR_DATABASE_URL to a running server",
		ErrNoBinaries, searched, oldestMajor, older, installHint(), BinEnv)
}

// candidates lists directories that may hold a server, without repetition.
func candidates(ctx context.Context, places []string) []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if path, err := exec.LookPath("pg_config"); err == nil {
		if out, err := exec.CommandContext(ctx, path, "--bindir").Output(); err == nil {
			dirs = append(dirs, strings.TrimSpace(string(out)))
		}
	}
	for _, place := range places {
		matches, _ := filepath.Glob(place) // the only error is a malformed pattern
		dirs = append(dirs, matches...)
	}
	var unique []string
	for _, dir := range dirs {
		if resolved, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres")); err == nil {
			dir = filepath.Dir(resolved)
		}
		if !slices.Contains(unique, dir) {
			unique = append(unique, dir)
		}
	}
	return unique
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// majorOf asks the binary in dir for its major version.
func majorOf(ctx context.Context, dir string) (int, error) {
	if info, err := os.Stat(filepath.Join(dir, "initdb")); err != nil || info.Mode()&0o111 == 0 {
		return 0, fmt.Errorf("no initdb in %s", dir)
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "-V").Output()
	if err != nil {
		return 0, fmt.Errorf("ask the version of %s: %w", dir, err)
	}
	match := versionPattern.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("%s says %q, which is no version", dir, out)
	}
	return strconv.Atoi(string(match[1]))
}
