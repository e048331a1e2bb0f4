package allocator_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// replayPatience bounds the whole replay.
const replayPatience = 5 * time.Minute

// What the README shows is what a newcomer sees: each "$ command" of a console block is run against a fresh `allocator
// up`, and the lines under it are compared with what it prints, ids, times and tokens aside. UPDATE_README=1 writes what
// was printed into the README instead.
//
// Requirements: R67.
func TestReadmeIsReplayed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), replayPatience)
	defer cancel()
	shell, _ := startForReadme(ctx, t)
	readme := replay(t, "README.md", 4, shell, withoutChance)
	require.Contains(t, readme, "## What is measured and what is not")
}

// replay runs each "$ command" of a document's console blocks, of which there are so many at the least, and holds what it
// prints against what stands under it, as far as known leaves of both. It returns the document. UPDATE_README=1 writes what
// was printed into it instead.
func replay(t *testing.T, path string, least int, run, known func(text string) string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	ran := 0
	replayed := consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for line := range strings.SplitSeq(block, "\n") {
			if command, found := strings.CutPrefix(line, "$ "); found {
				ran++
				b.WriteString(line + "\n" + run(command))
			}
		}
		return b.String() + "```"
	})
	if os.Getenv("UPDATE_README") != "" {
		require.NoError(t, os.WriteFile(path, []byte(replayed), 0o600))
		return replayed
	}
	require.Equal(t, known(string(text)), known(replayed), "run UPDATE_README=1 go test -run %s . and look at the change", t.Name())
	require.GreaterOrEqual(t, ran, least)
	return string(text)
}

var consoleBlock = regexp.MustCompile("(?s)```console\n.*?```")

// chance is what differs from run to run.
var chance = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:res|srv|bnd|dec|key|evt)_[0-9a-f]{32}\b`),
	regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z`),
	regexp.MustCompile(`hold_[a-z0-9]+_[A-Za-z0-9_-]{43}`),
	regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b`),
	regexp.MustCompile(`"fence":\s*\d+`),
}

func withoutChance(text string) string {
	for _, pattern := range chance {
		text = pattern.ReplaceAllString(text, "…")
	}
	return text
}

// startForReadme builds the program, starts `up`, and returns a shell in which bin/allocator and the two variables of
// the README are there, and the address of the door for clients of Redis if more asks for it.
func startForReadme(ctx context.Context, t *testing.T, more ...string) (shell func(command string) string, redis string) {
	t.Helper()
	home := t.TempDir()
	for dir := home; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // PostgreSQL's own user has to get in
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	binary := filepath.Join(home, "bin", "allocator")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/allocator").CombinedOutput()
	require.NoError(t, err, string(out))

	up := exec.CommandContext(context.WithoutCancel(ctx), binary,
		append([]string{"up", "--json", "--data-dir", filepath.Join(home, "data"), "--listen", "127.0.0.1:0"}, more...)...)
	stdout, err := up.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, up.Start())
	t.Cleanup(func() {
		require.NoError(t, up.Process.Signal(syscall.SIGTERM))
		require.NoError(t, up.Wait())
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	require.NoError(t, err, "up ended before it was ready")
	var ready struct {
		URL   string `json:"url"`
		Key   string `json:"api_key"`
		Redis string `json:"redis_address"`
	}
	require.NoError(t, json.Unmarshal(line, &ready))

	return func(command string) string {
		run := exec.CommandContext(ctx, "bash", "-c", command)
		run.Dir = home
		run.Env = append(os.Environ(), "ALLOCATOR_URL="+ready.URL, "ALLOCATOR_API_KEY="+ready.Key, "NO_COLOR=1")
		out, _ := run.CombinedOutput() // a refusal exits with its own code, and its words are compared
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		return string(out)
	}, ready.Redis
}
