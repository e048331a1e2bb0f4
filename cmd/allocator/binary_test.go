package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// hang bounds waits that would otherwise never end when something is broken. No test asserts a time.
const hang = 2 * time.Minute

// poll is how often something is looked at that gives no signal.
const poll = 10 * time.Millisecond

// buildDir holds the binary that the tests of this package run as a user would.
var buildDir string

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "allocator-cli-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "allocator")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// command prepares the built binary with nothing of this process's own settings.
func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := build()
	require.NoError(t, err)
	cmd := exec.Command(binary, args...)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, envPrefix) {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// result is what a command came to.
type result struct {
	code           int
	stdout, stderr string
}

// invoke runs the binary to its end.
func invoke(t *testing.T, env []string, args ...string) result {
	t.Helper()
	running := start(t, env, args...)
	return running.wait()
}

// running is the binary at work.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Reader
	stderr *bytes.Buffer
	rest   strings.Builder
	ended  bool
}

func start(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	r := &running{t: t, cmd: command(t, env, args...), stderr: &bytes.Buffer{}}
	r.cmd.Stderr = r.stderr
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	r.lines = bufio.NewReader(out)
	require.NoError(t, r.cmd.Start())
	late := time.AfterFunc(hang, func() { _ = r.cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		if !r.ended {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
	return r
}

// line waits for the next line of stdout.
func (r *running) line() string {
	r.t.Helper()
	line, err := r.lines.ReadString('\n')
	if err != nil {
		_ = r.cmd.Wait()
		r.ended = true
		require.NoError(r.t, err, "stderr: %s", r.stderr)
	}
	return line
}

// until reads stdout up to the line that has the text.
func (r *running) until(text string) {
	r.t.Helper()
	for line := ""; !strings.Contains(line, text); {
		line = r.line()
	}
}

func (r *running) signal(s syscall.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(s))
}

// wait reads the rest of stdout and returns how it ended; a code of -1 is an end by a signal.
func (r *running) wait() result {
	r.t.Helper()
	_, err := r.lines.WriteTo(&r.rest)
	require.NoError(r.t, err)
	err = r.cmd.Wait()
	r.ended = true
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(r.t, err, &exit)
	}
	return result{code: r.cmd.ProcessState.ExitCode(), stdout: r.rest.String(), stderr: r.stderr.String()}
}

// dataDir is a directory whose every parent PostgreSQL's account can enter; the one that the testing package makes is
// closed to others.
func dataDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(postgrestest.Dir(t), "data")
}

// inProcess runs a command line without the binary, which is quicker and counted by the race detector.
func inProcess(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := &process{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, lookupEnv: func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}}
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	code := execute(ctx, p, args)
	return result{code, stdout.String(), stderr.String()}
}
