//go:build gates

package concurrency_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/store/postgres"
	"allocator/store/postgres/gate"
)

// attempt is the wish of a request to reserve one server at once.
func (w *world) attempt(server uuid.UUID, req allocation.Request) allocation.Attempt {
	return allocation.Attempt{
		Question: allocation.Question{Organization: org, Key: req.IdempotencyKey, Order: req.Order, CustomerRef: req.CustomerRef},
		Server:   serverID(server), Wanted: req.Requirements.Wanted(), Fingerprint: req.Fingerprint(), TokenKey: "test",
		By: identity.Actor{Kind: identity.ActorPerson, ID: "tester"},
	}
}

// atOnce tries a server at once and tells whether that made a reservation.
func (w *world) atOnce(ctx context.Context, server uuid.UUID, req allocation.Request, lapsed bool) bool {
	w.t.Helper()
	attempt := w.attempt(server, req)
	attempt.Lapsed = lapsed
	d := &allocation.Decision{Outcome: allocation.OutcomeReserved, Order: req.Order, By: identity.Actor{Kind: identity.ActorPerson}, Walked: []allocation.Walked{}}
	made, err := postgres.NewAllocations(w.pool).ReserveAtOnce(ctx, attempt, d)
	require.NoError(w.t, err)
	return made != nil
}

// rows counts what reservations leave, the numbers drawn by insertions that were undone included.
func (w *world) rows() string {
	w.t.Helper()
	return one[string](w, `SELECT concat_ws(' ', (SELECT count(*) FROM reservations), (SELECT count(*) FROM occupancy),
		(SELECT count(*) FROM event_feed), (SELECT count(*) FROM decisions), (SELECT last_value FROM reservation_fence))`)
}

// A reservation at once is made only if nothing speaks against it in a statement that comes behind the locks; otherwise
// nothing at all is written, nor tried: a collision would be an error in the server's log. Each case is what one condition of that statement, or of the lock before it, is there for.
//
// Requirements: R05, R06, R15, R30, R40, R42, R45.
func TestAtOnceEverythingOrNothing(t *testing.T) {
	t.Parallel()
	of := func(name, customer string) allocation.Request {
		req := request(name)
		req.CustomerRef = customer
		return req
	}
	tests := map[string]struct {
		prepare func(w *world, server uuid.UUID) // before, or beside it in an open transaction
		request allocation.Request
		made    bool
		lapsed  bool
	}{
		"nothing speaks against it": {func(*world, uuid.UUID) {}, request("a"), true, false},
		"another server is held":    {func(w *world, _ uuid.UUID) { w.server(1); w.held("b") }, request("a"), true, false},
		"the server is held":        {func(w *world, _ uuid.UUID) { w.held("b") }, request("a"), false, false},
		"its hold is dead, which the list does not know": {
			func(w *world, _ uuid.UUID) { w.expire(w.held("b").Reservation.ID) }, request("a"), false, false,
		},
		"its hold is dead, which the list knows": {
			func(w *world, _ uuid.UUID) { w.expire(w.held("b").Reservation.ID) }, request("a"), true, true,
		},
		"its hold is alive, which the list does not know": {func(w *world, _ uuid.UUID) { w.held("b") }, request("a"), false, true},
		"the server is sold": {func(w *world, server uuid.UUID) {
			w.exec(`INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
				VALUES ($1, $2, $3, 'service', 'person', '{"v":1}')`, org, uuid.New(), server)
		}, request("a"), false, false},
		"the server is in maintenance": {func(w *world, server uuid.UUID) {
			w.exec(`UPDATE servers SET state = 'maintenance' WHERE id = $1`, server)
		}, request("a"), false, false},
		"the server does not fit": {func(*world, uuid.UUID) {}, func() allocation.Request {
			req := request("a")
			req.Requirements.Sites = []string{"elsewhere"}
			return req
		}(), false, false},
		"what the order asks is unknown of it": {func(*world, uuid.UUID) {}, func() allocation.Request {
			req := request("a")
			req.Requirements.Models = []string{"a model"}
			return req
		}(), false, false},
		"there is no such server": {func(w *world, server uuid.UUID) {
			w.exec(`ALTER TABLE servers DISABLE TRIGGER servers_are_kept`)
			w.exec(`DELETE FROM servers WHERE id = $1`, server)
		}, request("a"), false, false},
		"the server is locked by somebody": {func(w *world, server uuid.UUID) { w.session().lock(server) }, request("a"), false, false},
		"the key has a reservation": {func(w *world, _ uuid.UUID) { w.server(1); w.held("a") }, func() allocation.Request {
			req := request("b")
			req.IdempotencyKey = "key-a"
			return req
		}(), false, false},
		"the order line has a reservation": {func(w *world, _ uuid.UUID) { w.server(1); w.held("a") }, func() allocation.Request {
			req := request("a")
			req.IdempotencyKey = "another"
			return req
		}(), false, false},
		"a sibling with the key is at work": {func(w *world, _ uuid.UUID) {
			w.session().do(`BEGIN`).do(`SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'reserve.key', 'acme', 'key-a'), 0))`)
		}, request("a"), false, false},
		"a sibling for the order line is at work": {func(w *world, _ uuid.UUID) {
			w.session().do(`BEGIN`).do(`SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'reserve.line', 'acme', 'order-a', '1', 1), 0))`)
		}, request("a"), false, false},
		"the organization is closing": {func(w *world, _ uuid.UUID) {
			w.exec(`UPDATE organizations SET closing = true WHERE id = $1`, org)
		}, request("a"), false, false},
		"the customer holds as many as it may": {func(w *world, _ uuid.UUID) {
			w.server(1)
			w.exec(`UPDATE organizations SET hold_limit = 1 WHERE id = $1`, org)
			require.Equal(w.t, allocation.OutcomeReserved, w.reserve(w.ctx, of("b", "customer")).Code)
		}, of("a", "customer"), false, false},
		"the customer holds one less": {func(w *world, _ uuid.UUID) {
			w.server(1)
			w.exec(`UPDATE organizations SET hold_limit = 2 WHERE id = $1`, org)
			require.Equal(w.t, allocation.OutcomeReserved, w.reserve(w.ctx, of("b", "customer")).Code)
		}, of("a", "customer"), true, false},
		"the database's own isolation level is another": {func(w *world, _ uuid.UUID) {
			w.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$`)
			w.pool.Reset()
		}, request("a"), false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			server := w.server(64 * 1024)
			tt.prepare(w, server)
			before := w.rows()
			require.Equal(t, tt.made, w.atOnce(w.ctx, server, tt.request, tt.lapsed))
			if !tt.made {
				require.Equal(t, before, w.rows())
				return
			}
			require.NotEqual(t, before, w.rows())
			w.sound()
		})
	}
}

// What changes between the lock and the statement behind it is seen by that statement, since its snapshot is younger.
//
// Requirements: R42, R52. Faults: F-R1, F-R16.
func TestAtOnceJudgesBehindTheLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.server(64 * 1024)
	ctx, arrived, release := w.pauseAt(gate.ReserveAfterLock)
	made := make(chan bool, 1)
	go func() { made <- w.atOnce(ctx, server, request("a"), false) }()
	w.wait(arrived)
	w.exec(`UPDATE organizations SET closing = true WHERE id = $1`, org)
	release()
	require.False(t, <-made)
	w.sound()
}

// A request that nothing stands in the way of waits for the database once, and what it answers is what a later reader
// finds; a dead hold that the list knows of is moved aside on the way.
//
// Requirements: R34.
func TestAtOnceInOneRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(20)
	p := w.throughProxy(1, allocation.MaxAge(time.Hour))
	for i := range 8 { // statements are prepared and the catalog is read
		w.held(fmt.Sprint("warm-", i))
	}
	p.forget()
	outcome := w.held("a")
	require.Len(t, p.roundTrips(), 1, shortened(p.roundTrips()))
	stored, err := w.reservations.Reservation(w.ctx, w.caller, outcome.Reservation.ID)
	require.NoError(t, err)
	require.Equal(t, stored, outcome.Reservation)
	decision, err := w.allocator.DecisionByID(w.ctx, w.caller, outcome.Decision.ID)
	require.NoError(t, err)
	require.Equal(t, outcome.Reservation.ID, decision.Reservation)
	require.Equal(t, []allocation.Walked{{Server: stored.Server.ID, Name: stored.Server.Name, Rank: 1, Outcome: allocation.TryReserved}}, decision.Walked)
	w.sound()
}
