package locking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// BackendPostgres is the name of the backend that locks in a PostgreSQL database.
const BackendPostgres = "pg"

// DefaultMaxLocks is how many locks one process holds at once unless configured otherwise.
const DefaultMaxLocks = 20

// postgresTimeout bounds what one operation waits for PostgreSQL where the caller's context does not say less.
const postgresTimeout = 5 * time.Second

// ErrPooled says that locks would go to sessions that change hands.
var ErrPooled = errors.New("pg.url leads to a connection pooler, which gives the sessions that locks hang on to others: give it the address of PostgreSQL itself")

// PostgresConfig says which database keeps the locks.
type PostgresConfig struct {
	URL      string        // postgres://user:password@host:5432/database, not through a pooler
	MaxLocks int           // how many connections, one per lock, this process may have; default DefaultMaxLocks
	Timeout  time.Duration // bounds one operation; default 5 s
}

// Postgres keeps locks as session advisory locks of PostgreSQL, each in a connection of its own. There is no time to
// live: a lock is held until it is released or its connection ends, by whatever cause. Renewing it is asking whether
// the connection is alive.
type Postgres struct {
	config  *pgx.ConnConfig
	limit   int
	timeout time.Duration
	log     *slog.Logger

	mu     sync.Mutex
	places int                 // taken or about to be taken
	live   map[string]*session // by the handle's token
	closed bool
}

var _ Locker = (*Postgres)(nil)

// OpenPostgres prepares the backend and connects when it is first used.
func OpenPostgres(config PostgresConfig, log *slog.Logger) (*Postgres, error) {
	connection, err := postgresConnection(config.URL)
	if err != nil {
		return nil, err
	}
	p := &Postgres{config: connection, limit: config.MaxLocks, timeout: config.Timeout, log: log, live: map[string]*session{}}
	if p.limit <= 0 {
		p.limit = DefaultMaxLocks
	}
	if p.timeout <= 0 {
		p.timeout = postgresTimeout
	}
	forOneUse(connection, p.timeout)
	return p, nil
}

// postgresConnection does not pass on why a URL cannot be read, because that might show the password. Of several addresses
// it wants the one that takes writes, unless the URL says otherwise: a standby has advisory locks of its own, which exclude
// nobody at the primary.
func postgresConnection(url string) (*pgx.ConnConfig, error) {
	connection, err := pgx.ParseConfig(url)
	if url == "" || err != nil { // the driver takes an empty one for "what the environment says"
		return nil, errors.New("pg.url cannot be read: write postgres://user:password@host:5432/database")
	}
	if connection.ValidateConnect == nil && severalHosts(connection) {
		connection.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return connection, nil
}

// severalHosts passes over the fallbacks that are the same address without TLS.
func severalHosts(c *pgx.ConnConfig) bool {
	return slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port })
}

// Name implements Locker.
func (*Postgres) Name() string { return BackendPostgres }

// Check connects once. It returns an error that matches ErrPooled if there is a pooler on the way, and one that matches
// ErrBackend if nobody answers.
func (p *Postgres) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	s, err := connect(ctx, p.config, "check")
	if err == nil {
		err = s.direct(ctx)
		s.close(ctx)
	}
	return p.failed(ctx, err)
}

// Try implements Locker. The time is only checked for its bounds: nothing expires here.
func (p *Postgres) Try(ctx context.Context, key string, ttl time.Duration) (*Handle, error) {
	if err := checkLock(key, ttl); err != nil {
		return nil, err
	}
	// 1. A place, since each lock keeps a connection open.
	if err := p.reserve(); err != nil {
		return nil, err
	}
	// 2. A session that bears the key's name, and the lock in it.
	bounded, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	s, err := lockedSession(bounded, p.config, key)
	if s == nil {
		p.unreserve()
		return nil, p.failed(ctx, err)
	}
	// 3. Where it is found again.
	h := &Handle{key: key, token: uuid.NewString(), ttl: ttl}
	if err := p.keep(ctx, h.token, s); err != nil {
		return nil, err
	}
	return h, nil
}

func (p *Postgres) failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return broken(ctx, fmt.Sprintf("PostgreSQL at %s:%d did not say who has the lock", p.config.Host, p.config.Port), err)
}

// Renew implements Locker: it asks whether the lock's session is alive. A lock whose session does not answer is given up.
func (p *Postgres) Renew(ctx context.Context, h *Handle) error {
	s := p.find(h)
	if s == nil {
		return ErrNotOwner
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if err := s.ping(ctx); err != nil {
		p.log.WarnContext(ctx, "the session of a lock is gone, so its holder is told that the lock is lost", "key", h.key, "error", err)
		p.forget(h)
		s.close(ctx)
		return ErrNotOwner
	}
	return nil
}

// Release implements Locker: it unlocks and drops the connection, which alone would do.
func (p *Postgres) Release(ctx context.Context, h *Handle) error {
	s := p.forget(h)
	if s == nil {
		return ErrNotOwner
	}
	defer s.close(ctx)
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if err := s.unlock(ctx, h.key); err != nil {
		p.log.WarnContext(ctx, "the session of a lock was gone before the lock was released", "key", h.key, "error", err)
		return ErrNotOwner
	}
	return nil
}

// Cleanup implements Locker: it drops every connection, and with them every lock that this process still holds.
func (p *Postgres) Cleanup(ctx context.Context) error {
	p.mu.Lock()
	sessions := p.live
	p.live, p.closed = map[string]*session{}, true
	p.places -= len(sessions)
	p.mu.Unlock()
	for _, s := range sessions {
		s.close(ctx)
	}
	return nil
}
