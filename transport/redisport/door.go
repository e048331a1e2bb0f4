package redisport

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

	"allocator/events"
	"allocator/identity"
	"allocator/locking"
	"allocator/reservation"
)

// Authenticator tells who sends a key. Errors: identity.ErrUnauthenticated (a RefusedError where more is known) if the
// key is not accepted, identity.ErrUnavailable if that could not be found out.
type Authenticator interface {
	// Authenticate tells who sends the text alk_….
	Authenticate(ctx context.Context, text string) (identity.Caller, error)
}

// AttemptRecorder keeps attempts that were refused before they became an act.
type AttemptRecorder interface {
	// Record writes one entry down.
	Record(ctx context.Context, entry events.AuditEntry) error
}

// Locks are the locks behind lock:*. Errors: *locking.InvalidError, or one that matches locking.ErrBackend.
type Locks interface {
	// Put takes, takes over or renews a lock.
	Put(ctx context.Context, organizationID string, put locking.Put) (locking.Placed, error)
	// Look returns nil if nobody has the lock.
	Look(ctx context.Context, organizationID, key string) (*locking.Entry, error)
	// Count tells how many of the locks somebody has.
	Count(ctx context.Context, organizationID string, keys []string) (int64, error)
	// Prolong changes what is left to whoever has the lock.
	Prolong(ctx context.Context, organizationID, key string, until locking.Until, later locking.Later) (bool, error)
	// Remove ends a lock if its token matches.
	Remove(ctx context.Context, organizationID, key string, match locking.Match) (bool, error)
	// Break ends locks whoever has them.
	Break(ctx context.Context, organizationID string, keys []string) (int64, error)
}

// Countdowns tell the state of a reservation and how long it is held; reservation.ErrNotFound if there is none.
type Countdowns interface {
	// Countdown reads both at one instant of the database's clock.
	Countdown(ctx context.Context, org identity.OrganizationID, id reservation.ID) (reservation.Countdown, error)
}

// Reservations are the reservations behind hold:* and reason:*. Errors: those of package reservation.
type Reservations interface {
	// Reservation reads one.
	Reservation(ctx context.Context, caller identity.Caller, id reservation.ID) (*reservation.Reservation, error)
	// Cancel gives one up.
	Cancel(
		ctx context.Context, caller identity.Caller, id reservation.ID, token string, cancel reservation.Cancellation,
	) (*reservation.Reservation, error)
}

// Deps are what the door needs of the rest; all of them are required.
type Deps struct {
	Authenticator Authenticator
	Attempts      AttemptRecorder
	Locks         Locks
	Countdowns    Countdowns
	Reservations  Reservations

	Log     *slog.Logger
	Version string // of the release, for INFO
}

// Limits bound what callers can use up. Zero fields take the defaults.
type Limits struct {
	Connections int           // at a time; default 1000
	Argument    int           // bytes of one argument; default 128 KiB, twice the longest token
	Arguments   int           // of one command; default 1024
	Command     int           // bytes of all its arguments; default 256 KiB
	Portion     int           // commands of a pipeline that are read ahead of their answers; default 64
	Idle        time.Duration // how long a client may say nothing; default 5 min
	Stranger    time.Duration // the same before AUTH; default 10 s
	Slow        time.Duration // for the rest of a command that has begun, and for a reply to be taken; default 10 s
	Work        time.Duration // for one command; default 5 s
}

func (l Limits) orDefaults() Limits {
	orDefault(&l.Connections, 1000)
	orDefault(&l.Argument, 128<<10)
	orDefault(&l.Arguments, 1024)
	orDefault(&l.Command, 256<<10)
	orDefault(&l.Portion, 64)
	orDefault(&l.Idle, 5*time.Minute)
	orDefault(&l.Stranger, 10*time.Second)
	orDefault(&l.Slow, 10*time.Second)
	orDefault(&l.Work, 5*time.Second)
	return l
}

func orDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Door serves clients of Redis. Safe for concurrent use.
type Door struct {
	deps   Deps
	limits Limits
	tls    *tls.Config // nil: plain
	began  time.Time

	lastID    atomic.Int64 // of a connection
	connected atomic.Int64
}

// New makes the door; with a TLS configuration it speaks nothing else.
func New(deps Deps, limits Limits, secure *tls.Config) *Door {
	return &Door{deps: deps, limits: limits.orDefaults(), tls: secure, began: time.Now()}
}

// drainTime bounds how long the commands under way at the end may take.
const drainTime = 10 * time.Second

// Serve answers commands from the listener until ctx ends. Then no connection is taken, commands under way are finished,
// and every connection is closed. It returns nil after an orderly end.
func (d *Door) Serve(ctx context.Context, listener net.Listener) error {
	gate := d.newGate(ctx, listener)
	defer gate.close()
	err := redcon.Serve(gate, d.serve, d.accept, d.closed)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the Redis door ended: %w", err)
	}
	return gate.failed()
}

// accept gives a new connection its session.
func (d *Door) accept(conn redcon.Conn) bool {
	g, ours := conn.NetConn().(*guard)
	if !ours {
		return false
	}
	conn.SetContext(d.newSession(g))
	return true
}

// closed is called by redcon when a connection has ended, whatever ended it.
func (d *Door) closed(conn redcon.Conn, err error) {
	if err != nil {
		d.deps.Log.Debug("a connection of the Redis door ended", "remote", conn.RemoteAddr(), "error", err)
	}
}
