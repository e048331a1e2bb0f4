//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeInstallation is a directory whose postgres says the version.
func fakeInstallation(t *testing.T, name, version string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, program := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho '" + program + " (PostgreSQL) " + version + "'\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755))
	}
	return dir
}

func TestNewestInstallationComesFirst(t *testing.T) {
	t.Parallel()
	old, middle, newest := fakeInstallation(t, "a", "14.9"), fakeInstallation(t, "b", "15.3"), fakeInstallation(t, "c", "17beta1")
	withoutInitdb := fakeInstallation(t, "d", "18.0")
	require.NoError(t, os.Remove(filepath.Join(withoutInitdb, "initdb")))

	found, tooOld := usable(t.Context(), []string{old, middle, newest, withoutInitdb, "/nowhere"})
	require.Equal(t, []Installation{{newest, 17}, {middle, 15}}, found)
	require.Len(t, tooOld, 1)
	require.Contains(t, tooOld[0], "version 14")
}

func TestInstallationOfTheDataIsPreferredToTheNewest(t *testing.T) {
	t.Parallel()
	c := cluster{home: t.TempDir()}
	found := []Installation{{"/seventeen", 17}, {"/sixteen", 16}}
	chosen, err := c.chooseInstallation(found)
	require.NoError(t, err)
	require.Equal(t, 17, chosen.Major, "no data yet")

	require.NoError(t, os.Mkdir(c.data(), 0o700))
	overwrite(t, c.data(), "PG_VERSION", "16\n")
	chosen, err = c.chooseInstallation(found)
	require.NoError(t, err)
	require.Equal(t, 16, chosen.Major)

	overwrite(t, c.data(), "PG_VERSION", "15\n")
	_, err = c.chooseInstallation(found)
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorContains(t, err, "version 15 and version 17, 16 is installed")
}

func TestPlacesArePathThenPgConfigThenPackages(t *testing.T) {
	path, bindir, packages := fakeInstallation(t, "path", "15.0"), fakeInstallation(t, "bindir", "15.0"), fakeInstallation(t, "16", "16.0")
	tools := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(path, "postgres"), filepath.Join(tools, "postgres")))
	require.NoError(t, os.WriteFile(filepath.Join(tools, "pg_config"), []byte("#!/bin/sh\necho "+bindir+"\n"), 0o755))
	t.Setenv("PATH", tools)

	got := candidates(t.Context(), []string{filepath.Join(filepath.Dir(packages), "*"), packages})
	require.Equal(t, []string{path, bindir, packages}, got, "links are followed, repetitions dropped")
}

func TestMissingBinariesSayWhatToInstall(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{DataDir: dataDir(t), BinDir: "/nowhere"})
	require.ErrorIs(t, err, ErrNoBinaries)
	require.ErrorContains(t, err, "looked in /nowhere for version 15 or newer")
	require.ErrorContains(t, err, installHint())
	require.ErrorContains(t, err, BinEnv)

	_, err = Start(t.Context(), Options{DataDir: dataDir(t), BinDir: fakeInstallation(t, "old", "13.2")})
	require.ErrorIs(t, err, ErrNoBinaries)
	require.ErrorContains(t, err, "version 13")
}

func TestBinariesCanBeNamedByTheEnvironment(t *testing.T) {
	t.Setenv(BinEnv, "/nowhere")
	_, err := Start(t.Context(), Options{DataDir: dataDir(t)})
	require.ErrorIs(t, err, ErrNoBinaries)
	require.Equal(t, "/given", Options{BinDir: "/given"}.binDir(), "what the caller says is stronger")
}
