//go:build gates

package concurrency_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
)

// ladder adds n servers of different sizes, the best candidate first.
func (w *world) ladder(n int) []uuid.UUID {
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = w.server(1024 * (i + 1))
	}
	return ids
}

// With the 25 best of 26 servers locked by others, the walk ends before the 26th, which is free, and says that more
// remained: never that there is nothing.
//
// Requirements: R19, R20, R22. Faults: F-R13.
func TestABoundedScan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.ladder(26)
	for _, s := range servers[:25] {
		w.session().lock(s)
	}
	d := w.refused(w.reserve(w.ctx, request("late")), allocation.OutcomeContended, allocation.CauseScanLimit)
	require.Equal(t, 25, d.Skipped)
	require.Zero(t, d.Attempts)
	require.Zero(t, d.Stale)
	require.Len(t, d.Walked, 25)
	require.Equal(t, 26, d.Eligible)
	require.Zero(t, one[int](w, `SELECT count(*) FROM reservations`))
	w.sound()
}

// Twenty-four skips are no attempts, and the twenty-fifth candidate still wins.
//
// Requirements: R22, R24.
func TestTwentyFourSkipsStillWin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.ladder(26)
	for _, s := range servers[:24] {
		w.session().lock(s)
	}
	o := w.held("late")
	require.Equal(t, 24, o.Decision.Skipped)
	require.Zero(t, o.Decision.Attempts)
	require.Equal(t, 25, o.Decision.Choice.Rank)
	require.Equal(t, serverID(servers[24]), o.Reservation.Server.ID)
	require.Contains(t, o.Decision.Choice.Text, "24 taken by another order at that moment")
	w.sound()
}

// With exactly 25 candidates, all locked, nothing remained unexamined: others were faster, and that is all.
//
// Requirements: R25, R35.
func TestAllExaminedIsServersTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, s := range w.ladder(25) {
		w.session().lock(s)
	}
	d := w.refused(w.reserve(w.ctx, request("late")), allocation.OutcomeContended, allocation.CauseServersTaken)
	require.Equal(t, 25, d.Skipped)
	w.sound()
}

// A hundred orders at once over two hundred equal servers: no walk scans more than 25 or makes more than 5 attempts,
// and no server goes twice.
//
// Requirements: R21, R24. Faults: F-L2.
func TestHundredOrdersKeepTheLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(200)
	outcomes := make([]*allocation.Outcome, 100)
	together(len(outcomes), func(i int) { outcomes[i] = w.reserve(w.ctx, request(fmt.Sprint(i))) })
	for _, o := range outcomes {
		require.LessOrEqual(t, len(o.Decision.Walked), allocation.MaxScanned)
		require.LessOrEqual(t, o.Decision.Attempts, allocation.MaxAttempts)
		require.Equal(t, len(o.Decision.Walked), o.Decision.Skipped+o.Decision.Stale+o.Decision.Attempts+reserved(o))
	}
	require.GreaterOrEqual(t, tally(outcomes)["reserved"], 97, tally(outcomes))
	w.sound()
}

func reserved(o *allocation.Outcome) int {
	if o.Code == allocation.OutcomeReserved {
		return 1
	}
	return 0
}

// A candidate that stopped qualifying between the list and the lock is stale: no attempt, and the next one is tried.
// Judged only before the lock, it would have been sold.
//
// Requirements: R24, R34.
func TestJudgedAgainUnderTheLock(t *testing.T) {
	t.Parallel()
	changes := map[string]string{
		"went into maintenance":       `UPDATE servers SET state = 'maintenance' WHERE id = $1`,
		"lost memory that was needed": `UPDATE servers SET memory_mib = 512 WHERE id = $1`,
		"was sold directly": `INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
			VALUES ('acme', gen_random_uuid(), $1, 'service', 'person', '{"v": 1}')`,
	}
	for name, sql := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			servers := w.ladder(2)
			req := request("a")
			req.Requirements.Memory.MiBMin = 1024
			finish := w.paused("reserve.afterList", req)
			w.exec(sql, servers[0])
			a := finish()
			require.NoError(t, a.err)
			require.Equal(t, allocation.OutcomeReserved, a.outcome.Code)
			require.Equal(t, serverID(servers[1]), a.outcome.Reservation.Server.ID)
			require.Equal(t, 1, a.outcome.Decision.Stale)
			require.Zero(t, a.outcome.Decision.Attempts)
			w.sound()
		})
	}
}

// A server that was reserved between the list and the lock is a skip, and a conversion in between changes nothing: one
// snapshot for locking and judging would have sold it twice.
//
// Requirements: R22, R34, R49.
func TestHeldAndSoldBetweenListAndLock(t *testing.T) {
	t.Parallel()
	for _, convert := range []bool{false, true} {
		t.Run(fmt.Sprint("converted ", convert), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			finish := w.paused("reserve.afterList", request("slow"))
			fast := w.held("fast")
			if convert {
				_, err := w.reservations.Convert(w.ctx, w.caller, fast.Reservation.ID, "", "service-1")
				require.NoError(t, err)
			}
			a := finish()
			require.NoError(t, a.err)
			d := w.refused(a.outcome, allocation.OutcomeContended, allocation.CauseServersTaken)
			require.Equal(t, 1, d.Skipped+d.Stale)
			require.Zero(t, d.Attempts)
			w.sound()
		})
	}
}

// A candidate that was skipped or lost is let go before the next is locked: while the walk waits at its last candidate,
// nobody else finds the earlier ones locked.
//
// Requirements: R15, R27.
func TestOneCandidateAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := w.ladder(3)
	stale := w.session()
	last := w.session().do(`BEGIN`).hold(servers[2], "last")
	req := request("walker")
	ctx, arrived, release := w.pauseAt("reserve.afterList")
	done := w.begin(ctx, req)
	w.wait(arrived)
	stale.do(`UPDATE servers SET state = 'failed' WHERE id = ANY ($1)`, servers[:2])
	release()
	w.someoneWaitsFor(last.pid())
	free := one[int](w, `SELECT count(*) FROM (SELECT FROM servers WHERE id = ANY ($1) FOR UPDATE SKIP LOCKED) f`, servers[:2])
	require.Equal(t, 2, free)
	last.do(`ROLLBACK`)
	a := w.receive(done)
	require.NoError(t, a.err)
	require.Equal(t, 2, a.outcome.Decision.Stale)
	require.Equal(t, allocation.OutcomeReserved, a.outcome.Code)
	w.sound()
}
