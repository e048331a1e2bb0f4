package allocator_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine is a made-up machine for tools/setup.sh: its PATH and its folders hold what a test puts there and nothing of
// the machine that the test runs on but plain text tools.
type machine struct {
	t    *testing.T
	root string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{t: t, root: t.TempDir()}
	for _, tool := range []string{"sh", "awk", "sed", "dirname", "mktemp", "rm", "rmdir", "mkdir", "cat", "env", "tee", "chmod"} {
		found, err := exec.LookPath(tool)
		require.NoError(t, err)
		m.link(found, "bin/"+tool)
	}
	m.program("bin/id", "echo 0") // root, so that nothing asks for a password
	return m
}

func (m machine) link(target, name string) {
	m.t.Helper()
	m.folderOf(name)
	require.NoError(m.t, os.Symlink(target, filepath.Join(m.root, name)))
}

// program writes a shell script of that name.
func (m machine) program(name, script string) {
	m.t.Helper()
	m.folderOf(name)
	require.NoError(m.t, os.WriteFile(filepath.Join(m.root, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

func (m machine) folderOf(name string) {
	m.t.Helper()
	require.NoError(m.t, os.MkdirAll(filepath.Join(m.root, filepath.Dir(name)), 0o755))
}

func (m machine) goVersion(version string) {
	m.t.Helper()
	m.program("bin/go", `case "$*" in "env GOVERSION") echo go`+version+`;; "env CC") echo gcc;; esac`)
}

func (m machine) postgres(version string) {
	m.t.Helper()
	folder := "usr/lib/postgresql/" + version + "/bin/"
	m.program(folder+"initdb", "exit 0")
	m.program(folder+"postgres", "echo 'postgres (PostgreSQL) "+version+".3 (Debian)'")
}

// setup runs the script there and returns what it said.
func (m machine) setup(what string, environment ...string) (string, error) {
	m.t.Helper()
	script, err := filepath.Abs("tools/setup.sh")
	require.NoError(m.t, err)
	require.FileExists(m.t, script) // looked at here, or a cached test result would not know that it depends on it
	command := exec.CommandContext(m.t.Context(), filepath.Join(m.root, "bin/sh"), script, what)
	command.Env = append([]string{"PATH=" + filepath.Join(m.root, "bin"), "SETUP_ROOT=" + m.root, "TMPDIR=" + m.t.TempDir()}, environment...)
	said, err := command.CombinedOutput()
	return string(said), err
}

// TestSetupOnAMachineThatHasAll says nothing and installs nothing.
func TestSetupOnAMachineThatHasAll(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		postgres, what string
		environment    []string
	}{
		"PostgreSQL 15 in Debian's folder":         {"15", "run", nil},
		"a newer one":                              {"18", "run", nil},
		"a database elsewhere stands in for it":    {"", "run", []string{"ALLOCATOR_DATABASE_URL=postgres://db"}},
		"and for the tests another":                {"", "test", []string{"TEST_DATABASE_URL=postgres://db"}},
		"an old one beside, if there is a new one": {"14 16", "run", nil},
		"the model checker is there":               {"15", "prove", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.goVersion("1.26.4")
			m.program("bin/gcc", "exit 0")
			m.program("bin/spin", "exit 0")
			for version := range strings.FieldsSeq(tt.postgres) {
				m.postgres(version)
			}
			said, err := m.setup(tt.what, tt.environment...)
			require.NoError(t, err)
			require.Empty(t, said)
		})
	}
}

// TestSetupNamesWhatItCannotInstall in one sentence that says what to do.
func TestSetupNamesWhatItCannotInstall(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		goVersion, postgres, what, want string
	}{
		"no Go":            {"", "15", "run", "Go 1.26 or newer is needed, and there is none: install it from https://go.dev/dl/ and run this again."},
		"an old Go":        {"1.19", "15", "run", "Go 1.26 or newer is needed, and this one is go1.19: install it"},
		"no PostgreSQL":    {"1.26", "", "run", "PostgreSQL 15 or newer is needed: install the package"},
		"an old one":       {"1.30", "14", "run", "or name a running one in ALLOCATOR_DATABASE_URL"},
		"none for tests":   {"1.26", "", "test", "or name a running one in TEST_DATABASE_URL"},
		"a word too many":  {"1.26", "15", "prod", "usage"},
		"two digits of Go": {"1.3", "15", "run", "this one is go1.3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.program("bin/gcc", "exit 0")
			if tt.goVersion != "" {
				m.goVersion(tt.goVersion)
			}
			if tt.postgres != "" {
				m.postgres(tt.postgres)
			}
			said, err := m.setup(tt.what)
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, 1, failed.ExitCode(), said)
			require.Contains(t, said, tt.want)
			require.Equal(t, 1, strings.Count(said, "\n"), "one sentence: %s", said)
		})
	}
}

// TestSetupNeedsACompilerForTests, as gcc alone, without the C library's headers, compiles nothing.
func TestSetupNeedsACompilerForTests(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.goVersion("1.26.0")
	m.postgres("16")
	m.program("bin/gcc", "exit 1")
	said, err := m.setup("test")
	require.Error(t, err)
	require.Contains(t, said, "The race detector needs a C compiler")
	said, err = m.setup("run")
	require.NoError(t, err, "running needs none: %s", said)
}

// TestSetupOnDebianLeavesNoClusterBehind: the package would create one and keep it running; while it is installed a
// line in its drop-in folder forbids that, and afterwards the folder is as it was.
func TestSetupOnDebianLeavesNoClusterBehind(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.goVersion("1.26.0")
	m.postgres("17")
	require.NoError(t, os.Rename(filepath.Join(m.root, "usr/lib/postgresql"), filepath.Join(m.root, "package")))
	m.program("bin/apt-cache", "echo '  Candidate: 17+278'")
	m.link(lookPath(t, "mv"), "bin/mv")
	m.program("bin/apt-get", `
case "$*" in
  *" postgresql-common") mkdir -p $SETUP_ROOT/etc/postgresql-common ;;
  *" postgresql") cat $SETUP_ROOT/etc/postgresql-common/createcluster.d/* >$SETUP_ROOT/seen; mv $SETUP_ROOT/package $SETUP_ROOT/usr/lib/postgresql ;;
esac`)

	said, err := m.setup("run")
	require.NoError(t, err, said)
	require.Contains(t, said, "installing postgresql with apt-get")
	seen, err := os.ReadFile(filepath.Join(m.root, "seen"))
	require.NoError(t, err)
	require.Equal(t, "create_main_cluster = false\n", string(seen))
	require.NoDirExists(t, filepath.Join(m.root, "etc/postgresql-common/createcluster.d"))
}

// TestSetupInstallsNoPostgreSQLThatIsTooOld: where the system's packages offer 14, installing it would help nobody.
func TestSetupInstallsNoPostgreSQLThatIsTooOld(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.goVersion("1.26.0")
	m.program("bin/apt-cache", "echo '  Candidate: 14+238'")
	m.program("bin/apt-get", `case "$*" in *install*) echo installed >$SETUP_ROOT/seen ;; esac`)
	said, err := m.setup("run")
	require.Error(t, err)
	require.Contains(t, said, "PostgreSQL 15 or newer is needed: install the package postgresql-17")
	require.NoFileExists(t, filepath.Join(m.root, "seen"))
}

func lookPath(t *testing.T, program string) string {
	t.Helper()
	found, err := exec.LookPath(program)
	require.NoError(t, err)
	return found
}

// TestSetupStartsNoService: what tests of faults need comes in packages that would start services, at once and at every
// boot; while one is installed Debian's policy script forbids it, and afterwards there is no such script.
func TestSetupStartsNoService(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.goVersion("1.26.0")
	m.postgres("17")
	m.program("bin/gcc", "exit 0")
	m.program("bin/redis-server", "exit 0")
	m.program("bin/ip", "exit 0")
	for _, tool := range []string{"grep", "cp"} {
		m.link(lookPath(t, tool), "bin/"+tool)
	}
	m.folderOf("usr/sbin/any")
	m.program("bin/apt-cache", "exit 0")
	m.program("bin/apt-get", `case "$*" in *" pgbouncer"*) cp "$SETUP_ROOT/usr/sbin/policy-rc.d" "$SETUP_ROOT/seen"; cp "$0" "$SETUP_ROOT/usr/sbin/pgbouncer" ;; esac`)
	said, err := m.setup("test")
	require.NoError(t, err, said)
	require.Contains(t, said, "installing pgbouncer with apt-get")
	require.NotContains(t, said, "no pgbouncer here")
	require.Contains(t, said, "so clocks do not jump: install the package faketime for it.")
	seen, err := os.ReadFile(filepath.Join(m.root, "seen"))
	require.NoError(t, err)
	require.Contains(t, string(seen), "exit 101")
	require.NoFileExists(t, filepath.Join(m.root, "usr/sbin/policy-rc.d"))
}
