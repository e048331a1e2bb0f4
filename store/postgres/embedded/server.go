//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

// Server is a running PostgreSQL. Its methods may be called by several
// goroutines at once.
type Server struct {
	cluster  cluster
	opts     Options
	password string
	lock     *os.File
	log      *os.File

	child *child
	port  int

	stopping atomic.Bool
	stopOnce sync.Once
	stopErr  error
}

// Start runs PostgreSQL on opts.DataDir and returns when it answers and the
// database allocator exists. The directory is created and initialised at the
// first start and belongs to this process until Stop or its end. Errors wrap one
// of the package's Err values where the caller may want to tell them apart.
func Start(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, opts.StartTimeout)
	defer cancel()
	// 1. The directory, the account, and whether the one reaches the other.
	c, err := locate(opts.DataDir)
	if err != nil {
		return nil, err
	}
	// 2. One process per directory.
	lock, err := takeLock(c.home)
	if err != nil {
		return nil, err
	}
	server := &Server{cluster: c, opts: opts, lock: lock}
	if err := server.start(ctx); err != nil {
		server.release()
		return nil, err
	}
	return server, nil
}

func locate(dir string) (cluster, error) {
	home, err := resolve(dir)
	if err != nil {
		return cluster{}, err
	}
	c := cluster{home: home}
	if c.account, err = chooseAccount(c.data()); err != nil {
		return cluster{}, err
	}
	return c, checkEnterable(home, c.account)
}

// start does, under the lock, what is left of Start.
func (s *Server) start(ctx context.Context) error {
	// 1. Binaries that fit the data.
	found, err := findInstallations(ctx, s.opts.binDir())
	if err != nil {
		return err
	}
	if s.cluster.install, err = s.cluster.chooseInstallation(found); err != nil {
		return err
	}
	// 2. Data.
	if err := s.cluster.create(ctx, !s.opts.FsyncOffForTests); err != nil {
		return err
	}
	if s.password, err = s.cluster.readPassword(); err != nil {
		return err
	}
	// 3. Nobody else on it.
	orphan, err := s.cluster.clearPredecessor(ctx)
	if err != nil {
		return err
	}
	if orphan {
		s.opts.Log.WarnContext(ctx, "shut down a PostgreSQL server whose process had ended without stopping it", "data_dir", s.cluster.home)
	}
	// 4. The server.
	if s.log, err = openLog(s.cluster.home); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	s.opts.Log.InfoContext(ctx, "PostgreSQL is running", "version", s.cluster.install.Major, "data_dir", s.cluster.home,
		"port", s.port, "os_user", s.cluster.account.name)
	return nil
}

// URL is the connection string of the database allocator, password included.
func (s *Server) URL() string { return s.url(databaseName) }

func (s *Server) url(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role, s.password),
		Host:     "127.0.0.1:" + strconv.Itoa(s.port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Version is the major version of the running server, such as "17".
func (s *Server) Version() string { return strconv.Itoa(s.cluster.install.Major) }

// Done is closed when the server has ended, by Stop or by itself; Err tells which.
func (s *Server) Done() <-chan struct{} { return s.child.done }

// Err is nil while the server runs and after Stop. It wraps ErrDied and shows
// the end of the server's log when the server ended without having been asked.
func (s *Server) Err() error {
	select {
	case <-s.child.done:
	default:
		return nil
	}
	if s.stopping.Load() {
		return nil
	}
	return fmt.Errorf("%w (%s); %s", ErrDied, s.child.status(), logTail(s.cluster.home))
}

// Stop shuts the server down, rolling open transactions back, and frees the data
// directory. When ctx ends first, or after 20 seconds, the shutdown becomes an
// immediate one: nothing committed is lost, but the next start has to recover.
// Later calls return the first one's result.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		select {
		case <-s.child.done: // it died earlier; Err keeps saying so
		default:
			s.stopping.Store(true)
			s.stopErr = shutDown(ctx, s.child.pid, s.child.done)
		}
		s.release()
	})
	return s.stopErr
}

// release lets go of the directory.
func (s *Server) release() {
	if s.log != nil {
		_ = s.log.Close()
	}
	letGo(s.lock)
}
