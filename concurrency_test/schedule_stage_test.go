//go:build gates

package concurrency_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/gate"
)

// stage is a world whose clock stands still where the test sets it, for many plays one after the other.
type stage struct {
	*world
	setClock func(time.Time)
	lanes    []*lane
	desk     *pgx.Conn // where the plays are judged
	plays    *int
	reached  map[gate.Place]int
}

// lane is the way of one actor: services over a single connection, so that the actor is known by its server process.
type lane struct {
	allocator    *allocation.Allocator
	reservations *reservation.Service
	pool         *pgxpool.Pool
	pid          int32
}

// fill is the lane's own: with requests that begin twice, one schedule would become four.
func (l *lane) fill(t *testing.T, caller identity.Caller) {
	t.Helper()
	_, err := l.allocator.Capacity(t.Context(), caller, allocation.Grouping{})
	require.NoError(t, err)
}

// lanes are as many as a schedule has actors at the most.
const lanes = 3

func newStage(t *testing.T, options ...allocation.Option) *stage {
	t.Helper()
	s := &stage{world: newWorld(t), plays: new(int), reached: map[gate.Place]int{}}
	s.setClock = s.freezeClock(curtain)
	s.openDesk()
	for range lanes {
		s.lanes = append(s.lanes, s.openLane(options...))
	}
	return s
}

// on is the stage for a part of the test.
func (s *stage) on(t *testing.T) *stage { //nolint:thelper // it helps nobody: it is made for t
	part, w := *s, *s.world
	w.t = t
	part.world = &w
	return &part
}

// openLane opens a connection with the frozen clock and without any time limit.
func (s *stage) openLane(options ...allocation.Option) *lane {
	s.t.Helper()
	url := s.with(map[string]string{
		"search_path": "frozen, pg_catalog, public", "lock_timeout": "0", "statement_timeout": "0", "idle_in_transaction_session_timeout": "0",
	})
	pool, err := postgres.Open(s.ctx, url, postgres.PoolOptions{MaxConns: 1, Application: "lane"})
	require.NoError(s.t, err)
	s.t.Cleanup(pool.Close)
	tokens, err := reservation.ParseTokenKeys(tokenKeys)
	require.NoError(s.t, err)
	l := &lane{
		pool:         pool,
		allocator:    allocation.New(postgres.NewAllocations(pool), s.release, tokens, options...),
		reservations: reservation.NewService(postgres.NewReservations(pool), tokens),
	}
	require.NoError(s.t, pool.QueryRow(s.ctx, `SELECT pg_backend_pid()`).Scan(&l.pid))
	return l
}

// openDesk opens a connection on which the tables show the rows of one organization alone, so that judging a play does
// not become slower with each one before it.
func (s *stage) openDesk() {
	s.t.Helper()
	s.exec(`CREATE SCHEMA desk`)
	for _, table := range []string{"servers", "reservations", "bindings", "occupancy", "events", "decisions"} {
		s.exec(fmt.Sprintf(`CREATE VIEW desk.%[1]s AS SELECT t.* FROM public.%[1]s t WHERE organization_id = current_setting('desk.organization')`, table)) //nolint:unqueryvet // the whole table, whatever its columns
	}
	conn, err := pgx.Connect(s.ctx, s.with(map[string]string{"search_path": "desk, public"}))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close(s.ctx) })
	s.desk = conn
}

// endSQL tells what stands in the end: the reservations in the order in which they were made, and the server.
const endSQL = `SELECT concat_ws(', ',
		(SELECT string_agg(order_id || ' ' || state, ', ' ORDER BY id) FROM reservations),
		(SELECT CASE WHEN s.state <> 'ready' THEN s.state WHEN o.server_id IS NULL THEN 'free' END FROM servers s LEFT JOIN occupancy o ON true),
		(SELECT 'bound' FROM occupancy WHERE binding_id IS NOT NULL))`

// judge looks at a play that has come to its end: what stands, what the auditor finds, and what was left locked.
func (p *play) judge(story fmt.Stringer) (end string) {
	p.t.Helper()
	var found, pids []string
	batch := &pgx.Batch{}
	batch.Queue(`SELECT set_config('desk.organization', $1, false)`, p.org)
	batch.Queue(auditSQL).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	batch.Queue(`SELECT mode || ' of ' || locktype || ' by ' || pid FROM pg_locks WHERE pid = ANY ($1)`, p.pids()).Query(func(rows pgx.Rows) (err error) {
		pids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	batch.Queue(endSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&end) })
	require.NoError(p.t, p.desk.SendBatch(p.ctx, batch).Close())
	require.Empty(p.t, found, story)
	require.Empty(p.t, pids, "locks that were left\n%s", story)
	return end
}

func (s *stage) pids() (pids []int32) {
	for _, l := range s.lanes {
		pids = append(pids, l.pid)
	}
	return pids
}

// dayAfter lets a day pass and sweeps: nothing may go on being held.
func (p *play) dayAfter(story fmt.Stringer) {
	p.t.Helper()
	p.setClock(curtain.Add(24 * time.Hour))
	_, err := p.reservations.Sweep(p.ctx, batch)
	require.NoError(p.t, err, story)
	require.Zero(p.t, one[int](p.world, `SELECT count(*) FROM reservations WHERE state = 'held'`), story)
}

// deadlocks counts what the database had to break up. A session tells its numbers at the latest when it is asked to.
func (s *stage) deadlocks() int {
	s.t.Helper()
	for _, l := range s.lanes {
		_, err := l.pool.Exec(s.ctx, `SELECT pg_stat_force_next_flush()`)
		require.NoError(s.t, err)
	}
	return one[int](s.world, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
}

// curtain is when every play begins, in a future that the rules of the schema, which keep the real clock, find nothing
// past its deadline in; holdTime later a hold of that moment expires.
var curtain = time.Date(2096, 11, 30, 12, 0, 0, 0, time.UTC)

const holdTime = 15 * time.Minute

// play is one server of an organization of its own, and what stands on it in the beginning.
type play struct {
	*stage
	org     identity.OrganizationID
	staff   identity.Caller
	server  uuid.UUID
	hold    *allocation.Outcome   // of order-a
	binding reservation.BindingID // of order-a
}

// setting makes a play.
type setting func(s *stage) *play

// empty: nothing stands on the server.
func empty(s *stage) *play {
	s.t.Helper()
	s.setClock(curtain)
	*s.plays++
	p := &play{stage: s, org: identity.OrganizationID(fmt.Sprint("play-", *s.plays)), server: uuid.Must(uuid.NewV7())}
	p.staff = identity.LocalCaller(p.org, identity.Actor{Kind: identity.ActorPerson, ID: "staff"})
	s.exec(`WITH o AS (INSERT INTO organizations (id, name) VALUES ($1, $1))
		INSERT INTO servers (organization_id, id, source, external_id, name, site, memory_mib, state)
		VALUES ($1, $2, 'test', $1, $1, 'FSN1', 65536, 'ready')`, p.org, p.server)
	return p
}

// holding: order-a has held the server for five minutes.
func holding(s *stage) *play {
	s.t.Helper()
	p := empty(s)
	var err error
	p.hold, err = s.allocator.Reserve(s.ctx, p.staff, request("a"))
	require.NoError(s.t, err)
	require.Equal(s.t, allocation.OutcomeReserved, p.hold.Code)
	s.setClock(curtain.Add(holdTime / 3))
	return p
}

// overdue: the deadline of order-a's hold has passed, and nobody has swept.
func overdue(s *stage) *play {
	s.t.Helper()
	p := holding(s)
	s.setClock(curtain.Add(holdTime))
	return p
}

// sold: order-a's hold was converted.
func sold(s *stage) *play {
	s.t.Helper()
	p := holding(s)
	c, err := s.reservations.Convert(s.ctx, p.staff, p.hold.Reservation.ID, "", "service")
	require.NoError(s.t, err)
	p.binding = c.Binding.ID
	return p
}
