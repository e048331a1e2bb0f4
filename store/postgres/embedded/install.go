package embedded

import (
	"os"
	"runtime"
)

// installHint is the command that installs a PostgreSQL server here.
func installHint() string {
	return hintFor(runtime.GOOS, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

func hintFor(goos string, exists func(string) bool) string {
	if goos == "darwin" {
		return "install it with: brew install postgresql@17"
	}
	for _, manager := range []struct{ path, command string }{
		{"/usr/bin/apt-get", "apt install postgresql"},
		{"/usr/bin/dnf", "dnf install postgresql-server"},
		{"/sbin/apk", "apk add postgresql"},
		{"/usr/bin/zypper", "zypper install postgresql-server"},
		{"/usr/bin/pacman", "pacman -S postgresql"},
		{"/usr/sbin/pkg", "pkg install postgresql17-server"},
	} {
		if exists(manager.path) {
			return "install it with: " + manager.command
		}
	}
	return "install the PostgreSQL server package of your system"
}
