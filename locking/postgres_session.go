package locking

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// keyHash is 64 bits wide; hashtext has 32, and among some hundred thousand keys some collide. Its seed keeps these
	// locks apart from other users of advisory locks. Changing it would let an old and a new process hold one key at once.
	keyHash = `hashtextextended($1, 7311845019)`
	// sessionName begins the application_name of a lock's session; the key follows.
	sessionName = "allocator lock "
	// maxSessionName is what PostgreSQL keeps of an application_name.
	maxSessionName = 63
	// goodbye bounds the farewell to a session.
	goodbye = time.Second
)

const (
	// trySQL does not take the lock if another session answers than the one that was opened. CASE keeps the order.
	trySQL = `SELECT CASE WHEN pg_backend_pid() = $2::bigint THEN pg_try_advisory_lock(` + keyHash + `) END`
	// keepSQL lets nothing on the server end the session for idling, and lets the server notice within half a minute that
	// the holder is gone without a word.
	keepSQL = `SELECT set_config('idle_session_timeout', '0', false), set_config('tcp_keepalives_idle', '15', false),
		set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)`
	unlockSQL = `SELECT pg_advisory_unlock(` + keyHash + `)`
	// holderSQL reads the name of the session that has the key's hash. It is empty where it may not be seen.
	holderSQL = `SELECT coalesce(max(a.application_name), '')
		FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND a.datname = current_database() AND a.datid = l.database
		AND (l.classid::bigint << 32 | l.objid::bigint) = ` + keyHash
)

// session is one connection to PostgreSQL with one lock in it.
type session struct {
	mu   sync.Mutex // a connection serves one at a time
	conn *pgx.Conn
	name string
}

// forOneUse makes connections of one use each. Nothing is set at their start but a name, since a pooler would refuse to
// connect before it is recognised.
func forOneUse(config *pgx.ConnConfig, timeout time.Duration) {
	config.ConnectTimeout = timeout
	dialer := net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}
	config.DialFunc = dialer.DialContext
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // no statement is sent twice on a connection
}

// connect opens a session whose name shows the key: it stands in pg_stat_activity beside the number in pg_locks.
func connect(ctx context.Context, template *pgx.ConnConfig, key string) (*session, error) {
	config := template.Copy()
	name := nameOf(key)
	config.RuntimeParams["application_name"] = name
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &session{conn: conn, name: name}, nil
}

// lockedSession returns a session that has the lock, or nil if somebody else has it.
func lockedSession(ctx context.Context, template *pgx.ConnConfig, key string) (*session, error) {
	s, err := connect(ctx, template, key)
	if err != nil {
		return nil, err
	}
	got, err := s.try(ctx, key)
	if err == nil && got {
		return s, nil
	}
	if err == nil {
		err = s.collision(ctx, key)
	}
	s.close(ctx)
	return nil, err
}

func (s *session) try(ctx context.Context, key string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var got *bool
	if err := s.conn.QueryRow(ctx, trySQL, key, int64(s.conn.PgConn().PID())).Scan(&got); err != nil {
		return false, err
	}
	if got == nil {
		return false, ErrPooled
	}
	if !*got {
		return false, nil
	}
	_, err := s.conn.Exec(ctx, keepSQL)
	return err == nil, err
}

// collision is an error if the lock is held under another key of the same hash, which would be no contention: no waiting
// helps, only another name.
func (s *session) collision(ctx context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var holder string
	if err := s.conn.QueryRow(ctx, holderSQL, key).Scan(&holder); err != nil {
		return err
	}
	if strings.HasPrefix(holder, sessionName) && holder != s.name {
		return fmt.Errorf("the key %q has the same 64-bit hash as that of the session %q, so they cannot be held at once: rename one", key, holder)
	}
	return nil
}

// direct tells whether the session that was opened is the one that answers. A pooler names itself at the opening and
// passes statements on to sessions that it shares out.
func (s *session) direct(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pid int64
	if err := s.conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	if pid != int64(s.conn.PgConn().PID()) {
		return ErrPooled
	}
	return nil
}

func (s *session) ping(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.Ping(ctx)
}

func (s *session) unlock(ctx context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.conn.Exec(ctx, unlockSQL, key)
	return err
}

// close also serves callers that are gone already.
func (s *session) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.Close(ctx) // the server ends the session of a connection that is gone
}

// nameOf is the key itself where it fits and is plain, and otherwise its beginning and a hash, so that different keys
// have different names.
func nameOf(key string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, key)
	if plain == key && len(sessionName)+len(key) <= maxSessionName {
		return sessionName + key
	}
	sum := sha256.Sum256([]byte(key))
	tail := fmt.Sprintf("~%x", sum[:6])
	return sessionName + plain[:min(len(plain), maxSessionName-len(sessionName)-len(tail))] + tail
}
