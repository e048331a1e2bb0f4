//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package postgrestest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// watchScript waits for the end of its input, which comes when the test process
// has ended, however that happened. Then it makes sure that the server is gone,
// without ceremony, and removes its directory.
const watchScript = `
cat >/dev/null
file="$1/pgdata/postmaster.pid"
pid=$(head -n 1 "$file" 2>/dev/null)
tries=0
if [ -n "$pid" ]; then
	kill -QUIT "$pid" 2>/dev/null
	kill -CONT "$pid" 2>/dev/null
	while [ -f "$file" ] && kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 200 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	[ -f "$file" ] && kill -KILL "$pid" 2>/dev/null
fi
rm -rf "$1"
`

// watch starts the watching shell. Go offers no hook at the end of a test
// binary, and none could run after a kill.
func watch(home string) error {
	pipe, err := startWatch(home)
	if err == nil {
		watching = pipe
	}
	return err
}

// startWatch starts a shell that watches until the returned end of its pipe is closed, by this process or by its end.
func startWatch(home string) (*os.File, error) {
	input, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watch over the test server: %w", err)
	}
	shell := exec.Command("/bin/sh", "-c", watchScript, "watch", home) //nolint:noctx // it outlives every context
	shell.Stdin = input
	shell.Dir = "/"
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is not for it
	if err := shell.Start(); err != nil {
		return nil, fmt.Errorf("watch over the test server: %w", err)
	}
	return ours, input.Close()
}

// watching is the end of the pipe that closes with this process. It is kept in a
// variable because a collected file is a closed one.
var watching *os.File //nolint:unused // it is only to be kept
