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
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/gate"
)

// One sweep takes everything that is due, in batches; what is not due stays, and each move is told once.
//
// Requirements: R60, R59.
func TestOneSweepTakesAllBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(64 * 1024)
	alive := w.held("alive").Reservation
	w.dueHolds(1200)
	set := &gate.Set{}
	set.Arm(gate.SweepAfterPick, func(context.Context) error { return nil })
	require.Equal(t, 1200, swept(w, gate.With(w.ctx, set), w.reservations))
	require.Equal(t, 3, set.Reached(gate.SweepAfterPick), "500, 500 and 200")
	require.Equal(t, 1200, one[int](w, `SELECT count(DISTINCT reservation_id) FROM events WHERE type = 'reservation.expired' AND actor_kind = 'sweep'`))
	require.Equal(t, 1200, one[int](w, `SELECT count(*) FROM events WHERE type = 'reservation.expired'`))
	require.Equal(t, "held", w.state(alive.ID))
	require.Equal(t, 1200, one[int](w, free))
	require.Zero(t, swept(w, w.ctx, w.reservations))
	w.sound(rawRows...)
}

// A row that cannot be moved does not stop the others, neither those of its batch nor those behind it, and the error
// names it.
//
// Requirements: R60. Faults: F-J4.
func TestPoisonRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dueHolds(120)
	poisoned := one[uuid.UUID](w, `SELECT id FROM reservations WHERE order_id = '7'`)
	w.exec(`CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'poisoned on purpose' USING ERRCODE = 'data_exception'; END $$`)
	w.exec(fmt.Sprintf(`CREATE TRIGGER poison BEFORE UPDATE ON reservations FOR EACH ROW WHEN (OLD.id = '%s') EXECUTE FUNCTION poison()`, poisoned))

	result, err := w.reservations.Sweep(w.ctx, 50)
	require.Equal(t, reservation.Swept{Expired: 119, Failed: 1}, result)
	require.ErrorContains(t, err, "poisoned on purpose")
	require.ErrorContains(t, err, fmt.Sprintf("%x", poisoned[:]))
	require.Equal(t, []uuid.UUID{poisoned}, one[[]uuid.UUID](w, `SELECT array_agg(id) FROM reservations WHERE state = 'held'`))
	require.Equal(t, 119, one[int](w, `SELECT count(DISTINCT reservation_id) FROM events WHERE type = 'reservation.expired'`))

	result, err = w.reservations.Sweep(w.ctx, 50)
	require.Equal(t, reservation.Swept{Failed: 1}, result)
	require.Error(t, err)
	w.exec(`DROP TRIGGER poison ON reservations`)
	require.Equal(t, 1, swept(w, w.ctx, w.reservations))
	w.sound(rawRows...)
}

// The sweep passes over a row that somebody has locked, in a batch and one by one, and never waits for it; a locked
// server does not concern it.
//
// Requirements: R60.
func TestSweepPassesOverLockedRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dueHolds(20)
	locked := w.session().do(`BEGIN`).do(`SELECT FROM reservations WHERE order_id IN ('3', '4') FOR UPDATE`)
	w.session().do(`BEGIN`).do(`SELECT FROM servers FOR UPDATE`)
	done := beginSweep(w.ctx, w.reservations)
	require.Equal(t, reservation.Swept{Expired: 18}, receive(w, done))
	due, err := postgres.NewReservations(w.pool).DueAfter(w.ctx, reservation.Due{}, 10)
	require.NoError(t, err)
	require.Len(t, due, 2)
	moved, err := postgres.NewReservations(w.pool).ExpireOne(w.ctx, due[0])
	require.NoError(t, err)
	require.False(t, moved)
	locked.do(`COMMIT`)
	require.Equal(t, 2, swept(w, w.ctx, w.reservations))
}

// A sweep that moves its rows one by one looks at each again when it moves it: one that was renewed, cancelled or sold
// since it was found due stays as it is.
//
// Requirements: R13, R60.
func TestSweepOfOneLooksAgain(t *testing.T) {
	t.Parallel()
	meanwhile := map[string]string{
		"renewed":   `UPDATE reservations SET expires_at = clock_timestamp() + interval '10 minutes'`,
		"cancelled": `UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'person', end_reason = 'other'`,
	}
	for name, sql := range meanwhile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			r := w.held("a").Reservation
			w.expire(r.ID)
			store := postgres.NewReservations(w.pool)
			due, err := store.DueAfter(w.ctx, reservation.Due{}, 10)
			require.NoError(t, err)
			require.Len(t, due, 1)
			w.exec(sql)
			before := w.state(r.ID)
			moved, err := store.ExpireOne(w.ctx, due[0])
			require.NoError(t, err)
			require.False(t, moved)
			require.Equal(t, before, w.state(r.ID))
		})
	}
}

// With the release switch off nothing new is sold, and what is dead still becomes expired and gives its server back.
//
// Requirements: R57, R56. Faults: F-D5.
func TestSweepHasNoSwitch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	r := w.held("a").Reservation
	w.expire(r.ID)
	w.release.turnOff()
	require.Equal(t, allocation.OutcomeFeatureDisabled, w.reserve(w.ctx, request("b")).Code)
	require.Equal(t, 1, swept(w, w.ctx, w.reservations))
	w.endedOnce(r.ID, "expired", "sweep")
	require.Equal(t, 1, one[int](w, free))
	w.sound()
}

// Every server is held by an order that was abandoned: after one sweep all of them can be sold again.
//
// Requirements: R59.
func TestStormOfAbandonedOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 80
	w.servers(n)
	together(8, func(i int) {
		for j := range n / 8 {
			if _, err := w.allocator.Reserve(w.ctx, w.caller, request(fmt.Sprint(i, "-", j))); err != nil {
				t.Errorf("reserve: %v", err)
			}
		}
	})
	for i := 0; one[int](w, free) > 0; i++ { // those that were told to try again
		w.reserve(w.ctx, request(fmt.Sprint("again-", i)))
	}
	require.Equal(t, allocation.OutcomeNoCapacity, w.reserve(w.ctx, request("late")).Code)
	w.deadlineIn(-time.Second)
	require.Equal(t, n, swept(w, w.ctx, w.reservations))
	require.Equal(t, n, one[int](w, free))
	for i := range n {
		w.held(fmt.Sprint("new-", i))
	}
	w.sound()
}

// With no sweeper at all, no sale is lost: the allocator itself moves the dead hold aside under the server's lock.
//
// Requirements: R61, R56. Faults: F-J5.
func TestDeadHoldIsSoldWithoutASweeper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.servers(1)
	dead := w.held("a").Reservation
	w.exec(`UPDATE reservations SET expires_at = clock_timestamp() - interval '1 hour'`)

	finish := w.paused(gate.ReserveAfterInsert, request("b"))
	locked := w.session()
	_, err := locked.conn.Exec(w.ctx, `SELECT FROM servers WHERE id = $1 FOR UPDATE NOWAIT`, servers[0])
	require.ErrorContains(t, err, "could not obtain lock", "the dead hold is moved under the server's lock")
	require.Equal(t, "held", w.state(dead.ID), "nothing of it is seen before the commit")
	sold := finish()
	require.NoError(t, sold.err)
	require.Equal(t, allocation.OutcomeReserved, sold.outcome.Code)
	require.Equal(t, dead.Server.ID, sold.outcome.Reservation.Server.ID)
	w.endedOnce(dead.ID, "expired", "allocator")
	w.sound()
}

// A dead hold whose row somebody has locked is a skip: nothing went wrong, nobody waits, and a moment later it is sold.
//
// Requirements: R61, R22.
func TestLockedDeadHoldIsASkip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	dead := w.held("a").Reservation
	w.expire(dead.ID)
	locked := w.session().do(`BEGIN`).do(`SELECT FROM reservations WHERE id = $1 FOR UPDATE`, rawID(string(dead.ID)))
	got := w.receive(w.begin(w.ctx, request("b")))
	require.NoError(t, got.err)
	d := w.refused(got.outcome, allocation.OutcomeContended, allocation.CauseServersTaken)
	require.Equal(t, 1, d.Skipped)
	require.Zero(t, d.Attempts)
	require.Equal(t, "held", w.state(dead.ID))
	locked.do(`COMMIT`)
	w.held("c")
	w.endedOnce(dead.ID, "expired", "allocator")
	w.sound()
}

// Whether somebody cancelled it or it just sat there stands on the row: a sweep writes only expired, a person only
// cancelled, and a cancellation that comes after the deadline answers expired, in nobody's name.
//
// Requirements: R13, R12, R14.
func TestWhoEndsAReservationHow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(3)
	swept, cancelled, late := w.held("a").Reservation, w.held("b").Reservation, w.held("c").Reservation
	now, err := endings["cancel"].do(w.ctx, w, cancelled.ID)
	require.NoError(t, err)
	require.Equal(t, reservation.StateCancelled, now.State)
	w.endedOnce(cancelled.ID, "cancelled", "person")
	require.Equal(t, "tester", now.EndedBy.ID)

	w.expire(late.ID)
	now, err = endings["cancel"].do(w.ctx, w, late.ID)
	require.NoError(t, err)
	require.Equal(t, reservation.StateExpired, now.State)
	require.Empty(t, now.EndReason)
	w.endedOnce(late.ID, "expired", "allocator")

	_, err = w.pool.Exec(w.ctx, `UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'sweep' WHERE id = $1`, rawID(string(swept.ID)))
	require.ErrorContains(t, err, "reservations_sweep_only_expires")
	w.expire(swept.ID)
	_, err = w.reservations.Sweep(w.ctx, batch)
	require.NoError(t, err)
	w.endedOnce(swept.ID, "expired", "sweep")
	for _, r := range []*reservation.Reservation{swept, cancelled, late} {
		require.True(t, one[bool](w, `SELECT ended_at IS NOT NULL FROM reservations WHERE id = $1`, rawID(string(r.ID))))
		again, err := endings["cancel"].do(w.ctx, w, r.ID)
		require.NoError(t, err)
		require.Equal(t, w.state(r.ID), string(again.State))
	}
	w.sound()
}
