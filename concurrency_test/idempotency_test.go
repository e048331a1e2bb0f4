//go:build gates && unix

package concurrency_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// Five requests with one key over four servers, the winner paused before its commit: the four others are answered at
// once, although the winner has not committed, and none of them holds a server. Afterwards the key gives the winner's.
//
// Requirements: R43, R44, R45. Faults: F-K1.
func TestFiveOfOneKeyGiveOneReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(4)
	finish := w.paused(gate.ReserveAfterInsert, request("same"))
	losers := make([]*allocation.Outcome, 4)
	together(len(losers), func(i int) { losers[i] = w.receive(w.begin(w.ctx, request("same"))).outcome })
	for _, o := range losers {
		w.refused(o, allocation.OutcomeContended, allocation.CauseSameKey)
	}
	winner := finish()
	require.NoError(t, winner.err)
	require.Equal(t, allocation.OutcomeReserved, winner.outcome.Code)
	again := w.reserve(w.ctx, request("same"))
	require.Equal(t, allocation.OutcomeReplayed, again.Code)
	require.Equal(t, winner.outcome.Reservation.ID, again.Reservation.ID)
	require.Equal(t, winner.outcome.HoldToken, again.HoldToken)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations`))
	w.sound()
}

// Fifty callers with one key at once, over three services with pools of their own, again and again: whatever the order,
// one row; no loser hears that there is nothing, and each that asks again gets the winner's.
//
// Requirements: R43. Faults: F-K1.
func TestFiftyOfOneKeyOverThreeServices(t *testing.T) {
	t.Parallel()
	const callers = 50
	rounds := int(number(t, roundsEnv, 5))
	w := newWorld(t)
	w.servers(4 * rounds)
	services := make([]*allocation.Allocator, 3)
	for i := range services {
		services[i], _ = w.replica(w.url)
	}
	atOnce := 0
	for round := range rounds {
		req, outcomes, failures := request(fmt.Sprint(round)), make([]*allocation.Outcome, callers), make([]error, callers)
		ask := func(i int) { outcomes[i], failures[i] = services[i%len(services)].Reserve(w.ctx, w.caller, req) }
		together(callers, ask)
		require.NoError(t, errors.Join(failures...))
		counts := tally(outcomes)
		require.Equal(t, 1, counts["reserved"], counts)
		require.Equal(t, callers-1, counts["replayed"]+counts["contended/same_key"], counts)
		atOnce += counts["replayed"]
		winner := outcomes[slices.IndexFunc(outcomes, func(o *allocation.Outcome) bool { return o.Code == allocation.OutcomeReserved })]
		for i, o := range outcomes {
			if o.Code == allocation.OutcomeContended {
				ask(i)
			}
			require.NoError(t, failures[i])
			require.Equal(t, winner.Reservation.ID, outcomes[i].Reservation.ID)
			require.Equal(t, winner.HoldToken, outcomes[i].HoldToken)
		}
		require.Equal(t, map[string]int{"reserved": 1, "replayed": callers - 1}, tally(outcomes))
	}
	require.Equal(t, rounds, one[int](w, `SELECT count(*) FROM reservations`))
	w.sound()
	t.Logf("tried: %d times one key %d times at once, %d answered with the reservation at once, %d when they came again",
		rounds, callers, atOnce, rounds*(callers-1)-atOnce)
}

// A request that did not get its key leaves the order line to the sibling that did: taking both by chance, the two
// would refuse each other and nobody would be served.
//
// Requirements: R43.
func TestLoserOfTheKeyLeavesTheLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	const try = `SELECT pg_try_advisory_xact_lock(hashtextextended(concat_ws(chr(31), $1::text, 'acme', $2::text, $3::text, $4::text), 0))`
	sibling := w.session().do(`BEGIN`)
	var got bool
	require.NoError(t, sibling.conn.QueryRow(w.ctx, try, "reserve.key", "key-a", nil, nil).Scan(&got))
	require.True(t, got)
	loser := w.paused(gate.ReserveBeforeRefusal, request("a"))
	require.NoError(t, sibling.conn.QueryRow(w.ctx, try, "reserve.line", "order-a", "1", "1").Scan(&got))
	require.True(t, got)
	a := loser()
	require.NoError(t, a.err)
	w.refused(a.outcome, allocation.OutcomeContended, allocation.CauseSameKey)
}

// Two keys for one order line: the second is answered while the first is not committed, and gets the first one's
// reservation once it is.
//
// Requirements: R40, R45.
func TestTwoKeysForOneOrderLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(4)
	first, second := request("line"), request("line")
	second.IdempotencyKey = "another key"
	finish := w.paused(gate.ReserveAfterInsert, first)
	w.refused(w.reserve(w.ctx, second), allocation.OutcomeContended, allocation.CauseSameOrderLine)
	winner := finish()
	require.NoError(t, winner.err)
	again := w.reserve(w.ctx, second)
	require.Equal(t, allocation.OutcomeExisting, again.Code)
	require.Equal(t, winner.outcome.Reservation.ID, again.Reservation.ID)
	require.Equal(t, winner.outcome.HoldToken, again.HoldToken)
	w.sound()
}

// A request that could lock nothing never reached the insert; before it refuses it asks once more and returns what its
// sibling has committed meanwhile. The sibling is made to commit between the request's own list and its refusal.
//
// Requirements: R40, R41, R42.
func TestAskedAgainBeforeRefusal(t *testing.T) {
	t.Parallel()
	for name, rival := range map[string]func(*allocation.Request){
		"same key":        func(*allocation.Request) {},
		"same order line": func(r *allocation.Request) { r.IdempotencyKey = "rival" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			server := w.servers(1)[0]
			finish := w.paused(gate.ReserveAfterList, request("late"))
			// The rival is committed by raw SQL, since a sibling would be kept out by the advisory locks.
			req := request("late")
			rival(&req)
			w.exec(`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at,
					max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
				VALUES ($1, uuid_v7(), $2, $3, '1', 'person', clock_timestamp() + interval '15 minutes',
					clock_timestamp() + interval '1 hour', $4, $5, 'test', '{}', '{}', '{"v": 1, "site": "FSN1"}', uuid_v7())`,
				org, server, req.Order.OrderID, req.IdempotencyKey, req.Fingerprint())
			a := finish()
			require.NoError(t, a.err)
			require.Contains(t, []allocation.OutcomeCode{allocation.OutcomeReplayed, allocation.OutcomeExisting}, a.outcome.Code)
			require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations`))
		})
	}
}

// The sibling commits between the try-lock that was not got and the answer: the answer is its reservation.
//
// Requirements: R40, R41.
func TestAskedAgainAfterLockNotGot(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(*allocation.Request){
		"same key":        func(*allocation.Request) {},
		"same order line": func(r *allocation.Request) { r.IdempotencyKey = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(2)
			winner := w.paused(gate.ReserveAfterInsert, request("same"))
			sibling := request("same")
			alter(&sibling)
			loser := w.paused(gate.ReserveBeforeRefusal, sibling)
			won := winner()
			require.NoError(t, won.err)
			lost := loser()
			require.NoError(t, lost.err)
			require.False(t, lost.outcome.Refused(), "%+v", lost.outcome.Decision)
			require.Equal(t, won.outcome.Reservation.ID, lost.outcome.Reservation.ID)
			w.sound()
		})
	}
}

// The key's unique index catches a key that was committed after it was asked: raw SQL can do that, and the answer is
// the reservation that has the key, not a failure.
//
// Requirements: R29, R30.
func TestTheConstraintNameDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.ladder(2)
	finish := w.paused(gate.ReserveAfterLock, request("same"))
	req := request("same")
	w.exec(`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at,
			max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		VALUES ($1, uuid_v7(), $2, 'other', '1', 'person', clock_timestamp() + interval '15 minutes',
			clock_timestamp() + interval '1 hour', $3, $4, 'test', '{}', '{}', '{"v": 1, "site": "FSN1"}', uuid_v7())`,
		org, servers[1], req.IdempotencyKey, req.Fingerprint())
	a := finish()
	require.NoError(t, a.err)
	require.Equal(t, allocation.OutcomeReplayed, a.outcome.Code)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations`))
}

// The same key with another body is a mismatch, and nothing is done and no decision left.
//
// Requirements: R46. Cases: ID-01. Faults: F-K2.
func TestSameKeyOtherBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(2)
	w.held("a")
	for name, change := range map[string]func(*allocation.Request){
		"other requirements": func(r *allocation.Request) { r.Requirements.Sites = []string{"HEL1"} },
		"other order line":   func(r *allocation.Request) { r.Order.Line = "2" },
		"other customer":     func(r *allocation.Request) { r.CustomerRef = "c-2" },
	} {
		req := request("a")
		change(&req)
		_, err := w.allocator.Reserve(w.ctx, w.caller, req)
		require.ErrorIs(t, err, allocation.ErrIdempotencyMismatch, name)
	}
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM decisions`))
	w.sound()
}

// An order line whose hold expired, was cancelled, or whose binding ended gets a new reservation under a new key; the
// old key goes on telling what became of the old one. While it is live it is returned, or refused to other wishes.
//
// Requirements: R46, R61. Cases: ID-10. Faults: F-K4.
func TestOrderLineAgain(t *testing.T) {
	t.Parallel()
	ends := map[string]func(w *world, id reservation.ID){
		"expired": func(w *world, id reservation.ID) { w.expire(id) },
		"cancelled": func(w *world, id reservation.ID) {
			_, err := w.reservations.Cancel(w.ctx, w.caller, id, "", reservation.Cancellation{Reason: reservation.CancelStaff})
			require.NoError(w.t, err)
		},
		"sold and ended": func(w *world, id reservation.ID) {
			c, err := w.reservations.Convert(w.ctx, w.caller, id, "", "service")
			require.NoError(w.t, err)
			_, err = w.reservations.EndBinding(w.ctx, w.caller, c.Binding.ID, reservation.Ending{Reason: "done"})
			require.NoError(w.t, err)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(2)
			first := w.held("a")
			other := request("a")
			other.IdempotencyKey = "second"
			other.Requirements.Sites = []string{"FSN1"}
			d := w.reserve(w.ctx, other)
			require.Equal(t, allocation.OutcomeOrderLineHeld, d.Code)
			require.Equal(t, first.Reservation.ID, d.Reservation.ID)

			end(w, first.Reservation.ID)
			second := w.reserve(w.ctx, other)
			require.Equal(t, allocation.OutcomeReserved, second.Code)
			old := w.reserve(w.ctx, request("a"))
			require.Equal(t, allocation.OutcomeReplayed, old.Code)
			require.Equal(t, first.Reservation.ID, old.Reservation.ID)
			require.NotEqual(t, reservation.StateHeld, old.Reservation.State)
			require.Empty(t, old.HoldToken)
			w.sound()
		})
	}
}

// No two of one order line, whatever keys: twenty requests with keys of their own.
//
// Requirements: R29, R45.
func TestOneOrderLineByLuck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(20)
	outcomes := make([]*allocation.Outcome, 20)
	together(20, func(i int) {
		req := request("line")
		req.IdempotencyKey = fmt.Sprint(i)
		outcomes[i] = w.reserve(w.ctx, req)
	})
	counts := tally(outcomes)
	require.Equal(t, 1, counts["reserved"], counts)
	require.Equal(t, 19, counts["existing"]+counts["contended/same_order_line"], counts)
	w.sound()
}

// A customer's limit of open holds is asked after the order line and before the list, and locks nothing.
func TestHoldLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(5)
	w.exec(`UPDATE organizations SET hold_limit = 2`)
	var last *allocation.Outcome
	for i := range 3 {
		req := request(fmt.Sprint(i))
		req.CustomerRef = "c-77"
		last = w.reserve(w.ctx, req)
	}
	require.Equal(t, allocation.OutcomeHoldLimit, last.Code)
	again := request("0")
	again.CustomerRef, again.IdempotencyKey = "c-77", "other"
	require.Equal(t, allocation.OutcomeExisting, w.reserve(w.ctx, again).Code)
	stranger := request("s")
	stranger.CustomerRef = "c-78"
	require.Equal(t, allocation.OutcomeReserved, w.reserve(w.ctx, stranger).Code)
	w.held("nobody")
	w.sound()
}

// With the switch off nothing new is made, a used key is still answered, and what exists goes on.
//
// Requirements: R65, R66. Faults: F-D5.
func TestSwitchOffStrandsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(3)
	first := w.held("a")
	w.release.turnOff()
	off := w.reserve(w.ctx, request("b"))
	require.Equal(t, allocation.OutcomeFeatureDisabled, off.Code)
	require.Equal(t, allocation.OutcomeReplayed, w.reserve(w.ctx, request("a")).Code)
	_, err := w.allocator.Evaluate(w.ctx, w.caller, "", allocation.Requirements{})
	require.ErrorIs(t, err, allocation.ErrFeatureDisabled)
	_, err = w.reservations.Convert(w.ctx, w.caller, first.Reservation.ID, "", "service")
	require.NoError(t, err)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations`))
	require.Equal(t, 2, one[int](w, `SELECT count(*) FROM decisions`))
	w.sound()
}

// An order line whose server is sold is answered with that reservation, not with a second server.
//
// Requirements: R29, R46.
func TestOrderLineSoldIsReturned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(2)
	r := w.held("a").Reservation
	_, err := w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
	require.NoError(t, err)
	again := request("a")
	again.IdempotencyKey = "again"
	o := w.reserve(w.ctx, again)
	require.Equal(t, allocation.OutcomeExisting, o.Code)
	require.Equal(t, r.ID, o.Reservation.ID)
	require.Empty(t, o.HoldToken)
	w.sound()
}
