package postgrestest

import (
	"os"
	"testing"
)

// Dir returns a directory that PostgreSQL's account can enter, as it can each of its parents; the one that the testing
// package makes is closed to others. It goes away with the test.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "allocator-test-") //nolint:usetesting // see above
	if err != nil {
		tb.Fatalf("no directory: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		tb.Fatalf("no directory: %v", err)
	}
	return dir
}
