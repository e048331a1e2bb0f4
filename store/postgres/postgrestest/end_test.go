//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package postgrestest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"allocator/store/postgres/postgrestest"
)

// endEnv makes TestBinaryThatEnds end its test binary in the way named.
const endEnv = "POSTGRESTEST_END"

// hang bounds waits that would otherwise never end when something is broken.
const hang = 2 * time.Minute

func TestBinaryThatEnds(t *testing.T) { //nolint:paralleltest // it is the only test of its run
	way := os.Getenv(endEnv)
	if way == "" {
		t.Skip("it is run by TestServerEndsWithItsTestBinary")
	}
	var directory string
	require.NoError(t, postgrestest.New(t).QueryRow(t.Context(), "SHOW data_directory").Scan(&directory))
	fmt.Println("directory:", directory)
	switch way {
	case "panic":
		panic("as asked")
	case "exit":
		os.Exit(3)
	case "kill", "quit":
		select {}
	}
}

func TestServerEndsWithItsTestBinary(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"return", "panic", "exit", "kill", "quit"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			binary := exec.Command(os.Args[0], "-test.run=^TestBinaryThatEnds$", "-test.v")
			binary.Env = append(os.Environ(), endEnv+"="+way)
			directory := startAndReadDirectory(t, binary)
			if !strings.Contains(directory, "allocator-postgrestest-") {
				t.Skip("the server is not a local one of this package")
			}
			switch way {
			case "kill":
				require.NoError(t, binary.Process.Kill())
			case "quit": // what go test sends to a binary that overruns its timeout
				require.NoError(t, binary.Process.Signal(syscall.SIGQUIT))
			}
			err := binary.Wait()
			require.Equal(t, way == "return", err == nil, "ended with %v", err)
			require.Eventually(t, func() bool {
				_, err := os.Stat(directory)
				return errors.Is(err, fs.ErrNotExist)
			}, hang, 50*time.Millisecond, "the directory is removed after the server is gone")
		})
	}
}

// startAndReadDirectory starts the binary and returns what it prints after "directory:".
func startAndReadDirectory(t *testing.T, binary *exec.Cmd) string {
	t.Helper()
	out, err := binary.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, binary.Start())
	t.Cleanup(func() { _ = binary.Process.Kill() })
	var printed []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if directory, found := strings.CutPrefix(lines.Text(), "directory: "); found {
			return directory
		}
		printed = append(printed, lines.Text())
	}
	t.Fatalf("the binary named no directory: %q", printed)
	return ""
}

// Several test binaries of one run meet at a server that is given to them.
func TestBinariesShareAGivenServer(t *testing.T) {
	t.Parallel()
	url := postgrestest.EmptyURL(t)
	var binaries []*exec.Cmd
	var outputs []*strings.Builder
	for range 2 {
		binary, output := exec.Command(os.Args[0], "-test.run=^TestParallelTestsDoNotSeeEachOther$", "-test.v"), &strings.Builder{}
		binary.Env = append(os.Environ(), "TEST_DATABASE_URL="+url)
		binary.Stdout, binary.Stderr = output, output
		require.NoError(t, binary.Start())
		binaries, outputs = append(binaries, binary), append(outputs, output)
	}
	for i, binary := range binaries {
		require.NoError(t, binary.Wait(), outputs[i].String())
		require.Contains(t, outputs[i].String(), "--- PASS: TestParallelTestsDoNotSeeEachOther")
	}
}

func TestNothingButTheServerIsLeftRunning(t *testing.T) { //nolint:paralleltest // others would be left running
	before := goleak.IgnoreCurrent()
	t.Run("a test", func(t *testing.T) { postgrestest.New(t) })
	goleak.VerifyNone(t, before, postgrestest.IgnoreServer())
}
