//go:build gates

package concurrency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
)

// Six raw transactions hold one server each, uncommitted and without locking its row. The walk comes to wait at each
// index in turn, loses when that transaction commits, and gives up after five: the sixth server is never tried.
//
// Requirements: R23, R25, R27, R29.
func TestFiveLostRacesEndTheWalk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.ladder(6)
	var raw []*session
	for i, s := range servers {
		raw = append(raw, w.session().do(`BEGIN`).hold(s, string(rune('a'+i))))
	}
	done := w.begin(w.ctx, request("walker"))
	for _, s := range raw[:5] {
		w.someoneWaitsFor(s.pid())
		s.do(`COMMIT`)
	}
	a := w.receive(done)
	require.NoError(t, a.err)
	d := w.refused(a.outcome, allocation.OutcomeContended, allocation.CauseAttemptLimit)
	require.Equal(t, 5, d.Attempts)
	require.Zero(t, d.Skipped)
	require.Len(t, d.Walked, 5)
	raw[5].do(`ROLLBACK`)
	require.Equal(t, 5, one[int](w, `SELECT count(*) FROM reservations`))
	w.sound("I12 one event per transition", "every reservation's decision") // raw rows tell nobody
}

// After a lost race the same transaction goes on and wins the next candidate: the savepoint kept it healthy.
//
// Requirements: R23, R27, R29.
func TestASavepointPerAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.ladder(2)
	raw := w.session().do(`BEGIN`).hold(servers[0], "raw")
	done := w.begin(w.ctx, request("walker"))
	w.someoneWaitsFor(raw.pid())
	raw.do(`COMMIT`)
	a := w.receive(done)
	require.NoError(t, a.err)
	require.Equal(t, allocation.OutcomeReserved, a.outcome.Code)
	require.Equal(t, serverID(servers[1]), a.outcome.Reservation.Server.ID)
	require.Equal(t, 1, a.outcome.Decision.Attempts)
	require.Contains(t, a.outcome.Decision.Choice.Text, "1 lost to another order a moment earlier")
	w.sound("I12 one event per transition", "every reservation's decision")
}

// A raw transaction that holds and then rolls back loses nobody a server: the walk that waited for it wins.
//
// Requirements: R03, R23. Faults: F-R11.
func TestRolledBackRivalLeavesTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.servers(1)
	raw := w.session().do(`BEGIN`).hold(servers[0], "raw")
	done := w.begin(w.ctx, request("walker"))
	w.someoneWaitsFor(raw.pid())
	raw.do(`ROLLBACK`)
	a := w.receive(done)
	require.NoError(t, a.err)
	require.Equal(t, allocation.OutcomeReserved, a.outcome.Code)
	require.Zero(t, a.outcome.Decision.Attempts)
	w.sound()
}

// A rival that rolled back its lock on a free server was busy, never "sold out".
//
// Requirements: R20, R35, R37. Faults: F-R11.
func TestTwoKindsOfRefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.servers(1)
	rival := w.session().lock(servers[0])
	w.refused(w.reserve(w.ctx, request("a")), allocation.OutcomeContended, allocation.CauseServersTaken)
	rival.do(`ROLLBACK`)
	w.held("b")
	w.sound()
}
