//go:build gates

package concurrency_test

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// session is a connection of a person with psql: no application code between it and the database.
type session struct {
	w    *world
	conn *pgx.Conn
}

func (w *world) session() *session {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.url)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(w.ctx)) })
	return &session{w: w, conn: conn}
}

// do runs SQL that must succeed.
func (s *session) do(sql string, args ...any) *session {
	s.w.t.Helper()
	_, err := s.conn.Exec(s.w.ctx, sql, args...)
	require.NoError(s.w.t, err)
	return s
}

// lock begins a transaction that keeps a server row locked until commit or rollback.
func (s *session) lock(server uuid.UUID) *session {
	return s.do(`BEGIN`).do(`SELECT FROM servers WHERE organization_id = $1 AND id = $2 FOR UPDATE`, org, server)
}

// hold inserts a held row without asking anybody.
func (s *session) hold(server uuid.UUID, name string) *session {
	s.w.t.Helper()
	return s.do(rawHold, org, uuid.Must(uuid.NewV7()), server, "raw-"+name)
}

const rawHold = `INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at,
		max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
	VALUES ($1, $2, $3, $4, '1', 'person', clock_timestamp() + interval '15 minutes', clock_timestamp() + interval '1 hour',
		$4, '', 'test', '{}', '{}', '{"v": 1, "site": "FSN1"}', $2)`

// pid of the session's server process.
func (s *session) pid() uint32 { return s.conn.PgConn().PID() }

// someoneWaitsFor returns once a session waits for a lock that the process pid has.
func (w *world) someoneWaitsFor(pid uint32) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return one[bool](w, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))`, int32(pid))
	}, patience, 5*time.Millisecond, "nobody came to wait for session %d", pid)
}

// answer is what a request that runs beside the test came to.
type answer struct {
	outcome *allocation.Outcome
	err     error
}

// begin sends a request beside the test.
func (w *world) begin(ctx context.Context, req allocation.Request) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		outcome, err := w.allocator.Reserve(ctx, w.caller, req)
		done <- answer{outcome, err}
	}()
	return done
}

// paused sends a request that stops at a place and returns when it is there.
func (w *world) paused(place gate.Place, req allocation.Request) (finish func() answer) {
	w.t.Helper()
	ctx, arrived, release := w.pauseAt(place)
	done := w.begin(ctx, req)
	w.wait(arrived)
	return func() answer {
		release()
		return w.receive(done)
	}
}

// pauseAt returns a context whose first pass of the place stops there.
func (w *world) pauseAt(place gate.Place) (ctx context.Context, arrived <-chan struct{}, release func()) {
	set := &gate.Set{}
	arrived, release = set.Pause(place)
	w.t.Cleanup(release)
	return gate.With(w.ctx, set), arrived, release
}

func (w *world) wait(arrived <-chan struct{}) {
	w.t.Helper()
	select {
	case <-arrived:
	case <-time.After(patience):
		require.FailNow(w.t, "the place was never reached")
	}
}

func (w *world) receive(done <-chan answer) answer {
	w.t.Helper()
	select {
	case a := <-done:
		return a
	case <-time.After(patience):
		require.FailNow(w.t, "no answer: somebody waits for somebody")
		return answer{}
	}
}

// refused asserts a refusal of that kind and returns its decision.
func (w *world) refused(o *allocation.Outcome, code allocation.OutcomeCode, cause allocation.Cause) *allocation.Decision {
	w.t.Helper()
	require.NotNil(w.t, o.Decision, "%+v", o)
	require.Equal(w.t, string(code)+"/"+string(cause), string(o.Code)+"/"+string(o.Decision.Cause))
	return o.Decision
}

// checkout is a caller that has to show its hold token.
func (w *world) checkout() identity.Caller {
	return identity.Caller{
		Organization: org, Scopes: identity.NewScopeSet(identity.ScopeCheckout),
		Actor: identity.Actor{Kind: identity.ActorKey, ID: "key_checkout"},
	}
}

// state reads a reservation's row as it stands in the table.
func (w *world) state(id reservation.ID) string {
	w.t.Helper()
	return one[string](w, `SELECT state FROM reservations WHERE id = $1`, rawID(string(id)))
}
