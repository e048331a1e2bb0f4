//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRootIsNotTheServersAccount(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root hands the server to another account")
	}
	server := start(t, dataDir(t))
	require.NotZero(t, server.cluster.account.uid)
	info, err := os.Stat(server.cluster.data())
	require.NoError(t, err)
	require.EqualValues(t, server.cluster.account.uid, info.Sys().(*syscall.Stat_t).Uid)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestOwnerOfTheDataStaysTheServersAccount(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root hands the server to another account")
	}
	dir := filepath.Join(dataDir(t), clusterName)
	require.NoError(t, makeAll(dir))
	require.NoError(t, os.Chown(dir, 4321, 4322))
	chosen, err := chooseAccount(dir)
	require.NoError(t, err)
	require.Equal(t, account{name: "user 4321", uid: 4321, gid: 4322, dropped: true}, chosen)
}

func TestPermissionBitsAreReadLikeTheKernelDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	uid, gid := os.Getuid(), os.Getgid()
	stranger := account{uid: uid + 1, gid: gid + 1}
	member := account{uid: uid + 1, gid: gid + 1, groups: []int{gid}}
	for sentence, c := range map[string]struct {
		mode os.FileMode
		who  account
		want bool
	}{
		"the owner by the owner's bit":              {0o100, account{uid: uid}, true},
		"the owner not by the others' bit":          {0o001, account{uid: uid}, false},
		"a group member by the group's bit":         {0o010, account{uid: uid + 1, gid: gid}, true},
		"a member of a further group by that bit":   {0o010, member, true},
		"a group member not by the others' bit":     {0o001, member, false},
		"a stranger by the others' bit":             {0o001, stranger, true},
		"a stranger not by the owner's and group's": {0o770, stranger, false},
	} {
		require.NoError(t, os.Chmod(dir, c.mode))
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, c.want, c.who.canEnter(info), sentence)
	}
	require.NoError(t, os.Chmod(dir, 0o700))
}

// Root runs the life of a server once more as a user without privileges.
func TestOrdinaryUserCanRunTheServer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("the other tests ran as an ordinary user already")
	}
	nobody, err := droppedAccount("nobody")
	if err != nil {
		t.Skip("there is no user nobody")
	}
	dir := filepath.Dir(dataDir(t))
	copyProgram(t, os.Args[0], filepath.Join(dir, "tests"))
	run := exec.CommandContext(t.Context(), filepath.Join(dir, "tests"), "-test.v",
		"-test.run=^(TestDataOutlivesTheServer|TestSecondInstanceIsRefused|TestKilledProcessLeavesNothingInTheWay|TestDeathOfTheServerIsReported)$")
	run.Dir = "/"
	run.SysProcAttr = &syscall.SysProcAttr{Credential: nobody.credential()}
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, 4, strings.Count(string(out), "--- PASS"), string(out))
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	source, err := os.Open(from)
	require.NoError(t, err)
	defer func() { require.NoError(t, source.Close()) }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(target, source)
	require.NoError(t, err)
	require.NoError(t, target.Close())
}
