//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// role is the database's superuser, and databaseName the database made for the service.
const (
	role         = "allocator"
	databaseName = "allocator"
)

// cluster is a data directory with the account and the binaries that serve it.
type cluster struct {
	home    string // absolute, without symbolic links
	account account
	install Installation
}

func (c cluster) data() string         { return filepath.Join(c.home, clusterName) }
func (c cluster) passwordFile() string { return filepath.Join(c.home, "password") }

// command prepares one of the installation's programs: under the server's
// account, in its own process group, so that an interrupt typed at the terminal
// reaches only us, and with an environment in which no PG* variable leaks.
func (c cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.install.Dir, program), args...)
	cmd.Dir = c.home
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "HOME=" + c.home}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.account.credential(), Setpgid: true}
	return cmd
}

// chooseInstallation takes the installation whose major version is the data's,
// or the newest when there is no data yet.
func (c cluster) chooseInstallation(found []Installation) (Installation, error) {
	content, err := os.ReadFile(filepath.Join(c.data(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return found[0], nil
	}
	if err != nil {
		return Installation{}, fmt.Errorf("read the version of the data: %w", err)
	}
	version := strings.TrimSpace(string(content))
	var installed []string
	for _, candidate := range found {
		if strconv.Itoa(candidate.Major) == version {
			return candidate, nil
		}
		installed = append(installed, strconv.Itoa(candidate.Major))
	}
	return Installation{}, fmt.Errorf("%w: %s was written by version %s and version %s is installed; install version %s, or move the data with pg_upgrade",
		ErrVersion, c.data(), version, strings.Join(installed, ", "), version)
}

// create makes the cluster in a side folder and renames it, so that an
// interrupted initdb is never taken for a cluster.
func (c cluster) create(ctx context.Context, fsync bool) error {
	if _, err := os.Stat(filepath.Join(c.data(), "PG_VERSION")); err == nil {
		return nil
	}
	// 1. Clear what an interrupted attempt left. Remove refuses a directory with content.
	if err := os.Remove(c.data()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s holds files but no PG_VERSION; move it away or choose another data directory", ErrDamaged, c.data())
	}
	leftovers, _ := filepath.Glob(filepath.Join(c.home, "initdb-*"))
	for _, leftover := range leftovers {
		if err := os.RemoveAll(leftover); err != nil {
			return fmt.Errorf("remove an unfinished cluster: %w", err)
		}
	}
	// 2. A new password, readable by the server's account alone.
	if err := c.writePassword(); err != nil {
		return fmt.Errorf("write the database password: %w", err)
	}
	// 3. The cluster, then its name.
	side, err := os.MkdirTemp(c.home, "initdb-")
	if err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	if err := c.account.own(side); err != nil {
		return fmt.Errorf("give the cluster to %s: %w", c.account.name, err)
	}
	if err := c.initdb(ctx, side, fsync); err != nil {
		return err
	}
	if err := os.Rename(side, c.data()); err != nil {
		return fmt.Errorf("put the new cluster in place: %w", err)
	}
	return syncDirectory(c.home)
}

func (c cluster) writePassword() error {
	if err := os.Remove(c.passwordFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(c.passwordFile(), []byte(rand.Text()+"\n"), 0o600); err != nil {
		return err
	}
	return c.account.own(c.passwordFile())
}

func (c cluster) readPassword() (string, error) {
	content, err := os.ReadFile(c.passwordFile())
	if err != nil {
		return "", fmt.Errorf("%w: the database password cannot be read: %w; put the file back", ErrDamaged, err)
	}
	return strings.TrimSpace(string(content)), nil
}

// initdb fills dir. C.UTF-8 sorts by code point on every system that has it;
// C does the same where it is missing, knowing only ASCII letters.
func (c cluster) initdb(ctx context.Context, dir string, fsync bool) error {
	locale := "C.UTF-8"
	if runtime.GOOS != "linux" {
		locale = "C"
	}
	args := []string{
		"--pgdata=" + dir, "--username=" + role, "--auth=scram-sha-256", "--pwfile=" + c.passwordFile(),
		"--encoding=UTF8", "--locale=" + locale, "--data-checksums",
	}
	if !fsync {
		args = append(args, "--no-sync")
	}
	cmd := c.command(ctx, "initdb", args...)
	dieWithParent(cmd.SysProcAttr, syscall.SIGTERM)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it ends its own children
	cmd.WaitDelay = 10 * time.Second
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	run, err := startChild(cmd)
	if err == nil {
		<-run.done
		err = run.err
	}
	if err != nil {
		return fmt.Errorf("create the cluster with initdb: %w\n%s", err, lastLines(output.String()))
	}
	return nil
}

// syncDirectory makes a rename in dir survive a power cut.
func syncDirectory(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(handle.Sync(), handle.Close())
}
