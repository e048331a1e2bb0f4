//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// launch starts the postmaster and waits until it answers. Two failures pass by
// themselves and are tried again: another process took the port that was free a
// moment ago, and backends of a killed postmaster have not noticed its end yet.
func (s *Server) launch(ctx context.Context) error {
	for {
		logged := s.logSize()
		err := s.launchOnce(ctx)
		if err == nil {
			return nil
		}
		if !passes(s.logSince(logged)) || !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%w: %w; %s", ErrNotStarted, err, logTail(s.cluster.home))
		}
	}
}

// passes recognises the two failures by the server's log, the only place that
// names them; its language is fixed by the environment it is started in.
func passes(log string) bool {
	return strings.Contains(log, "could not create any TCP/IP sockets") ||
		strings.Contains(log, "pre-existing shared memory block")
}

func (s *Server) launchOnce(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	cmd := s.cluster.command(context.WithoutCancel(ctx), "postgres", s.arguments(port)...)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	dieWithParent(cmd.SysProcAttr, syscall.SIGINT)
	run, err := startChild(cmd)
	if err != nil {
		return fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	s.child, s.port = run, port
	if err := s.awaitReady(ctx); err != nil {
		expired, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel() // nobody uses it yet: no need for a slow shutdown
		return errors.Join(err, shutDown(expired, run.pid, run.done))
	}
	return nil
}

// arguments are given on the command line, so that they hold whatever somebody
// writes into postgresql.conf. There is no Unix socket: its path has a length
// limit that data directories exceed. Statements that fail are not logged: a
// lost race is everyday business here, the service logs what is not, and a
// statement may carry a customer's data.
func (s *Server) arguments(port int) []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=",
		"port=" + strconv.Itoa(port),
		"max_connections=" + strconv.Itoa(s.opts.MaxConnections),
		"logging_collector=off",
		"log_destination=stderr",
		"log_min_messages=log",
		"log_checkpoints=off",
	}
	if s.opts.FsyncOffForTests {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	args := []string{"-D", s.cluster.data()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

func freePort() (int, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, fmt.Errorf("find a free port on 127.0.0.1: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(errors.New("a TCP listener has no TCP address"), listener.Close())
	}
	return address.Port, listener.Close()
}

// awaitReady returns when the server answers, when it has ended, or when it can
// never let us in.
func (s *Server) awaitReady(ctx context.Context) error {
	for {
		err := s.prepare(ctx)
		if err == nil {
			return nil
		}
		if isDenied(err) {
			return fmt.Errorf("the password in %s is not the one of the data; put the right file back: %w", s.cluster.passwordFile(), err)
		}
		select {
		case <-s.child.done:
			return errors.New("the server " + s.child.status())
		case <-ctx.Done():
			return fmt.Errorf("the server did not answer in time: %w", errors.Join(context.Cause(ctx), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// prepare makes sure that it is our server that answers, and that the database exists.
func (s *Server) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var data string
	var exists bool
	err = conn.QueryRow(ctx, `SELECT current_setting('data_directory'), EXISTS (SELECT FROM pg_database WHERE datname = $1)`, databaseName).
		Scan(&data, &exists)
	if err != nil {
		return err
	}
	if data != s.cluster.data() {
		return fmt.Errorf("the server on port %d serves %s", s.port, data)
	}
	if !exists {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+databaseName)
	}
	return err
}

// isDenied tells whether the server runs but does not know the password.
func isDenied(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) &&
		(refused.Code == pgerrcode.InvalidPassword || refused.Code == pgerrcode.InvalidAuthorizationSpecification)
}

func (s *Server) logSize() int64 {
	info, err := os.Stat(logPath(s.cluster.home))
	if err != nil {
		return 0
	}
	return info.Size()
}

func (s *Server) logSince(offset int64) string {
	content, err := os.ReadFile(logPath(s.cluster.home))
	if err != nil || int64(len(content)) < offset {
		return ""
	}
	return string(content[offset:])
}

// pause waits and reports whether there is time for another try.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
