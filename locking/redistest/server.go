package redistest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// errNoProgram says that there is no Redis on this machine.
var errNoProgram = errors.New("there is no redis-server: run tools/setup.sh test, or name a running Redis in " + urlEnv)

// hang bounds the wait for a server that never answers.
const hang = time.Minute

// watchScript runs the server as long as its own input is open, which ends with the test process however that ends.
const watchScript = `
"$1/redis-server" --bind 127.0.0.1 --port "$2" --dir "$1" --save "" --appendonly no --requirepass "$3" >"$1/log" 2>&1 &
cat >/dev/null
kill -KILL $!
wait
rm -rf "$1"
`

// Server is a Redis that can be stopped, forgetting everything, and started again. It is used by one goroutine.
type Server struct {
	password string
	port     int
	input    io.Closer // the server ends when it is closed
	watch    *exec.Cmd
}

// Launch starts a server for a program that is no test, which stops it. Without a Redis on this machine the error says
// what to do.
func Launch(ctx context.Context) (*Server, error) { return newServer(ctx) }

func newServer(ctx context.Context) (*Server, error) {
	s := &Server{password: rand.Text()}
	return s, s.Start(ctx)
}

// Addr is where the server listens. Another start may change it.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// URL is the address of the server with its password. Another start may change it.
func (s *Server) URL() string { return s.URLAt(s.Addr()) }

// URLAt is the address of the server for somebody who reaches it by another way, as through a proxy.
func (s *Server) URLAt(addr string) string { return "redis://:" + s.password + "@" + addr }

// Start starts the server and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	program, err := program()
	if err != nil {
		return err
	}
	for {
		err = s.launch(ctx, program)
		if err == nil || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

// Stop kills the server and returns when it is gone. A stopped one stays stopped.
func (s *Server) Stop() {
	if s.input == nil {
		return
	}
	_ = s.input.Close()
	_ = s.watch.Wait()
	s.input = nil
}

// program finds what can be run as redis-server. Debian's redis-tools has it as redis-check-rdb.
func program() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server", "redis-check-rdb"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoProgram
}

func (s *Server) launch(ctx context.Context, program string) error {
	// 1. A directory with the program in it under the name by which it knows what to be, and a port.
	dir, err := os.MkdirTemp("", "allocator-redistest-")
	if err != nil {
		return fmt.Errorf("make a directory for a Redis: %w", err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "redis-server")); err != nil {
		return fmt.Errorf("make a directory for a Redis: %w", err)
	}
	if s.port, err = freePort(ctx); err != nil {
		return err
	}
	// 2. The server, and the shell that watches over it.
	s.watch = exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", watchScript, //nolint:gosec // its arguments are made above
		"watch", dir, strconv.Itoa(s.port), s.password)
	input, err := s.watch.StdinPipe()
	if err != nil {
		return fmt.Errorf("start a Redis: %w", err)
	}
	if err := s.watch.Start(); err != nil {
		return fmt.Errorf("start a Redis: %w", err)
	}
	s.input = input
	// 3. Its first answer.
	if err := s.awaitReady(ctx, dir); err != nil {
		s.Stop()
		return err
	}
	return nil
}

func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port on 127.0.0.1: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close() //nolint:forcetypeassert // it is a TCP listener
}

// errPortTaken says that somebody else took the port that was free a moment ago.
var errPortTaken = errors.New("the port of the Redis was taken meanwhile")

func (s *Server) awaitReady(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	for {
		log, _ := os.ReadFile(filepath.Join(dir, "log")) // not there yet, perhaps
		if bytes.Contains(log, []byte("Address already in use")) {
			return errPortTaken
		}
		if s.answers(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Redis did not answer in time; it says: %s", log)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// answers tells whether it is our server that answers there: nobody else has the password.
func (s *Server) answers(ctx context.Context) bool {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\n", s.password); err != nil {
		return false
	}
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.HasPrefix(line, "+OK")
}
