//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
)

// account is the operating system user the server runs as.
type account struct {
	name     string
	uid, gid int
	groups   []int
	dropped  bool // we are root and the server must not be
}

// chooseAccount returns this process's own account, unless that is root: then
// the owner of the data, so that a package installed later does not lock the
// server out of its own files, else postgres, else nobody.
func chooseAccount(data string) (account, error) {
	if os.Geteuid() != 0 {
		return ownAccount()
	}
	if info, err := os.Stat(data); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
			return account{name: nameOf(int(owner.Uid)), uid: int(owner.Uid), gid: int(owner.Gid), dropped: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if found, err := droppedAccount(name); err == nil {
			return found, nil
		}
	}
	return account{}, fmt.Errorf("%w: PostgreSQL refuses to run as root and there is neither a user postgres nor a user nobody; create one of them", ErrNotEnterable)
}

func ownAccount() (account, error) {
	groups, err := os.Getgroups()
	if err != nil {
		return account{}, fmt.Errorf("read the groups of this process: %w", err)
	}
	return account{name: nameOf(os.Geteuid()), uid: os.Geteuid(), gid: os.Getegid(), groups: groups}, nil
}

// nameOf is for messages; in a container an id may have no name.
func nameOf(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(uid)
}

func droppedAccount(name string) (account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return account{}, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return account{}, fmt.Errorf("user %s has no numeric id: %w", u.Username, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return account{}, fmt.Errorf("user %s has no numeric group id: %w", u.Username, err)
	}
	return account{name: u.Username, uid: uid, gid: gid, dropped: true}, nil
}

// credential is what a child process is started with; nil keeps our own.
func (a account) credential() *syscall.Credential {
	if !a.dropped {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)} //nolint:gosec // ids of the system's own accounts
}

// own gives a file that we made to the account.
func (a account) own(path string) error {
	if !a.dropped {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// canEnter judges by the permission bits, as the kernel does for a user without privileges.
func (a account) canEnter(dir fs.FileInfo) bool {
	stat, ok := dir.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := dir.Mode().Perm()
	switch {
	case int(stat.Uid) == a.uid:
		return mode&0o100 != 0
	case int(stat.Gid) == a.gid || slices.Contains(a.groups, int(stat.Gid)):
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
