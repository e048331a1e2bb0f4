package embedded

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInstallHintNamesThePackageOfThePlatform(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct{ goos, manager, want string }{
		"Debian":        {"linux", "/usr/bin/apt-get", "apt install postgresql"},
		"Fedora":        {"linux", "/usr/bin/dnf", "dnf install postgresql-server"},
		"Alpine":        {"linux", "/sbin/apk", "apk add postgresql"},
		"macOS":         {"darwin", "", "brew install postgresql"},
		"anything else": {"linux", "", "server package of your system"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, hintFor(c.goos, func(path string) bool { return path == c.manager }), c.want)
		})
	}
}
