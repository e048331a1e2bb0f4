//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package postgrestest

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyWhatNobodyUsesIsRemoved(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	ages := map[string]time.Duration{
		"lock":              time.Hour,
		"build-interrupted": 0,
		"run-held":          time.Hour, "run-abandoned": time.Hour, "run-starting": 0,
		"prepared-current": 9 * time.Hour,
		"prepared-1":       1 * time.Hour, "prepared-2": 2 * time.Hour, "prepared-3": 3 * time.Hour, "prepared-4": 4 * time.Hour,
	}
	for name := range ages {
		require.NoError(t, os.Mkdir(filepath.Join(base, name), 0o700))
	}
	lock, err := os.Create(filepath.Join(base, "run-held", "lock"))
	require.NoError(t, err)
	defer func() { require.NoError(t, lock.Close()) }()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	for name, age := range ages {
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(base, name), then, then))
	}

	removeLeftovers(base, filepath.Join(base, "prepared-current"))

	entries, err := os.ReadDir(base)
	require.NoError(t, err)
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	require.Equal(t, []string{"lock", "prepared-1", "prepared-2", "prepared-3", "prepared-current", "run-held", "run-starting"}, left)
}

// TestNodesHoldTheirDirectories keeps other test binaries from removing what a long test still uses.
func TestNodesHoldTheirDirectories(t *testing.T) {
	t.Parallel()
	primary := NewNode(t, NodeOptions{})
	standby := primary.Standby("standby", nil)
	for range 5 { // a file that nothing refers to is closed some time after a collection
		runtime.GC()
		<-time.After(10 * time.Millisecond)
	}

	require.True(t, held(primary.home))
	require.True(t, held(standby.home))
}
