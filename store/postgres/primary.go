package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errOldPrimary and errStandby refuse a server at the time of connecting, so that the next address is tried.
var (
	errOldPrimary = errors.New("this server was primary before another one took over; stop it, or let it follow the new one")
	errStandby    = errors.New("this server is read-only, and the database URL names others")
)

// primary keeps a pool to the newest primary that it has met. A primary that lost its office without noticing goes on
// taking writes when it comes back, and its timeline tells: each standby that takes over begins the next one.
type primary struct {
	several bool // addresses, of which one that takes writes is looked for

	mu       sync.Mutex
	timeline int64  // the newest that was met
	entered  string // the place whose fences begin above all earlier ones
}

// The keys of what a connection remembers of its server.
const (
	timelineKey = "allocator.timeline"
	placeKey    = "allocator.place" // system and timeline; none of a server that takes no writes
)

// whereSQL tells which server this is. A server that is restored is another place, too: it has a timeline of its own,
// or another system identifier.
const whereSQL = `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
	CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
	(SELECT system_identifier::text FROM pg_control_system())`

// watch makes the pool's connections go through p.
func (p *primary) watch(config *pgxpool.Config) {
	hosts := map[string]bool{fmt.Sprint(config.ConnConfig.Host, config.ConnConfig.Port): true}
	for _, fallback := range config.ConnConfig.Fallbacks {
		hosts[fmt.Sprint(fallback.Host, fallback.Port)] = true
	}
	p.several = len(hosts) > 1
	asked := config.ConnConfig.ValidateConnect // what target_session_attrs in the URL wants
	config.ConnConfig.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if asked != nil {
			if err := asked(ctx, conn); err != nil {
				return err
			}
		}
		return p.admit(ctx, conn)
	}
	config.AfterConnect = p.enter
	config.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) { return p.current(conn.PgConn()), nil }
}

// admit refuses a server that is not the one to write to, and remembers of the connection which server it is.
func (p *primary) admit(ctx context.Context, conn *pgconn.PgConn) error {
	result := conn.ExecParams(ctx, whereSQL, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) != 1 {
		return errors.New("the server does not say which one it is")
	}
	row := result.Rows[0]
	readOnly, timeline := string(row[0]) == "t", string(row[1])
	if readOnly && p.several {
		return errStandby
	}
	if timeline == "" {
		return nil
	}
	number, err := strconv.ParseInt(timeline, 16, 64)
	if err != nil {
		return fmt.Errorf("the server's timeline cannot be read: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if number < p.timeline {
		return fmt.Errorf("%w (it is on timeline %d, the other one on %d)", errOldPrimary, number, p.timeline)
	}
	p.timeline = number
	conn.CustomData()[timelineKey] = number
	if !readOnly {
		conn.CustomData()[placeKey] = string(row[2]) + "/" + timeline
	}
	return nil
}

// enter makes fences begin above every earlier one, once for each place: a standby that takes over, and a backup, may
// not know of the last ones that were given out. Until it is done nothing is sold over the connection.
func (p *primary) enter(ctx context.Context, conn *pgx.Conn) error {
	place, ok := conn.PgConn().CustomData()[placeKey].(string)
	if !ok || p.isEntered(place) {
		return nil
	}
	there := conn.PgConn().ExecParams(ctx, `SELECT to_regproc('enter_fence_epoch') IS NOT NULL`, nil, nil, nil, nil).Read()
	if there.Err != nil {
		return there.Err
	}
	if len(there.Rows) == 1 && string(there.Rows[0][0]) == "f" {
		return nil // the schema is yet to come, and so are the fences
	}
	err := conn.PgConn().ExecParams(ctx, `SELECT enter_fence_epoch($1)`, [][]byte{[]byte(place)}, nil, nil, nil).Read().Err
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.entered = place
	}
	return err
}

func (p *primary) isEntered(place string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entered == place
}

// current tells whether no newer primary was met since the connection was made.
func (p *primary) current(conn *pgconn.PgConn) bool {
	timeline, ok := conn.CustomData()[timelineKey].(int64)
	p.mu.Lock()
	defer p.mu.Unlock()
	return !ok || timeline >= p.timeline
}

// warnedKey marks a connection whose server warned about the statement that is under way.
const warnedKey = "allocator.warned"

// noteWarnings marks connections. A commit whose wait for a standby was cut off is called done by the server, and only a
// warning tells that the standby may not have it.
func noteWarnings(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.Code == pgerrcode.Warning {
		conn.CustomData()[warnedKey] = true
	}
}

// forgetWarnings is to be called before what warned will be asked about.
func forgetWarnings(conn *pgconn.PgConn) { delete(conn.CustomData(), warnedKey) }

func warned(conn *pgconn.PgConn) bool { return conn.CustomData()[warnedKey] != nil }
