package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const shownLines = 12

// openLog starts a new log for this run and keeps the one before it, so that the
// files cannot grow over many starts. The server writes to it directly: a pipe
// through this process would break when this process dies.
func openLog(home string) (*os.File, error) {
	path := logPath(home)
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("put the last server log aside: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server log: %w", err)
	}
	return file, nil
}

func logPath(home string) string { return filepath.Join(home, "postgres.log") }

// logTail is the end of the server's log for an error message.
func logTail(home string) string {
	content, err := os.ReadFile(logPath(home))
	if err != nil {
		return "the server log cannot be read: " + err.Error()
	}
	return "last lines of " + logPath(home) + ":\n" + lastLines(string(content))
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > shownLines {
		lines = lines[len(lines)-shownLines:]
	}
	return strings.Join(lines, "\n")
}
