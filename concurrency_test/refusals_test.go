//go:build gates

package concurrency_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// The complete list names every server with every reason against it, never only the first, and the counts add up.
//
// Requirements: R32, R33.
func TestEveryServerWithEveryReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plain := w.server(8 * 1024)
	worst := w.server(1024)
	w.exec(`UPDATE servers SET site = 'HEL1', state = 'maintenance' WHERE id = $1`, worst)
	sold := w.server(16 * 1024)
	w.exec(`INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
		VALUES ($1, uuid_v7(), $2, 's', 'person', '{"v": 1}')`, org, sold)

	req := request("a")
	req.Requirements = allocation.Requirements{
		Sites: []string{"FSN1"}, Memory: allocation.MemoryRequirements{MiBMin: 4096}, CPU: allocation.CPURequirements{CoresMin: 8},
	}
	d := w.refused(w.reserve(w.ctx, req), allocation.OutcomeNoCapacity, allocation.CauseNothingMatches)
	stored, err := w.allocator.DecisionByID(w.ctx, w.caller, d.ID)
	require.NoError(t, err)
	reasons := map[inventory.ServerID][]allocation.Reason{}
	for _, c := range stored.Frozen.Candidates {
		reasons[c.Server] = c.Reasons
	}
	cores := allocation.Reason{Code: "unknown_attribute", Requirement: "cpu.cores_min"}
	require.Equal(t, map[inventory.ServerID][]allocation.Reason{
		serverID(plain): {cores},
		serverID(worst): {
			{Code: "site", Requirement: "sites"}, cores, {Code: "memory_size", Requirement: "memory.mib_min"}, {Code: "state_maintenance"},
		},
		serverID(sold): {cores, {Code: "bound"}},
	}, reasons)
	counts := map[allocation.Code]int{}
	for _, c := range d.Counts {
		counts[c.Code] = c.Servers
		require.NotEmpty(t, c.Text)
		require.NotEmpty(t, c.Remedy)
	}
	require.Equal(t, map[allocation.Code]int{
		"unknown_attribute": 3, "site": 1, "memory_size": 1, "state_maintenance": 1, "bound": 1,
	}, counts)
	require.Equal(t, &allocation.Nearest{
		Requirement: "cpu.cores_min", Servers: 1, Text: `Without the requirement "cpu.cores_min" 1 server would fit at once.`,
	}, d.Nearest)
	w.sound()
}

// Nothing to sell has four causes, each with its own advice; a dead hold that nobody swept is no reason at all.
//
// Requirements: R33, R36, R37, R61. Cases: XP-01.
func TestCausesOfNoCapacity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refused(w.reserve(w.ctx, request("empty")), allocation.OutcomeNoCapacity, allocation.CauseInventoryEmpty)
	w.servers(1)
	elsewhere := request("elsewhere")
	elsewhere.Requirements.Sites = []string{"NBG1"}
	d := w.refused(w.reserve(w.ctx, elsewhere), allocation.OutcomeNoCapacity, allocation.CauseNothingMatches)
	require.Equal(t, "sites", d.Nearest.Requirement)

	held := w.held("held")
	d = w.refused(w.reserve(w.ctx, request("b")), allocation.OutcomeNoCapacity, allocation.CauseAllHeld)
	require.WithinDuration(t, held.Reservation.ExpiresAt, *d.NextExpiryAt, time.Microsecond)

	w.expire(held.Reservation.ID)
	second := w.held("c")
	require.Equal(t, "expired", w.state(held.Reservation.ID))
	require.Equal(t, "allocator", one[string](w, `SELECT ended_by_kind FROM reservations WHERE state = 'expired'`))
	require.Greater(t, second.Reservation.Fence, held.Reservation.Fence)

	_, err := w.reservations.Convert(w.ctx, w.caller, second.Reservation.ID, "", "service")
	require.NoError(t, err)
	w.refused(w.reserve(w.ctx, request("d")), allocation.OutcomeNoCapacity, allocation.CauseAllSold)
	w.sound()
}

// What was chosen and why stays readable as it was, whatever becomes of the server and of its price.
//
// Requirements: R38, R39. Cases: CO-09, XP-04.
func TestFrozenReasonAndPrice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.servers(1)[0]
	w.exec(`UPDATE servers SET price_amount = 89.90, price_currency = 'EUR'`)
	made := w.held("a")
	before, err := w.allocator.DecisionByID(w.ctx, w.caller, made.Decision.ID)
	require.NoError(t, err)

	w.exec(`UPDATE servers SET price_amount = 99.90, memory_mib = 1, name = 'renamed', site = 'HEL1'`)
	c, err := w.reservations.Convert(w.ctx, w.caller, made.Reservation.ID, "", "service")
	require.NoError(t, err)
	require.Equal(t, "89.90", c.Binding.Server.Price.Amount.String())
	require.Equal(t, int64(64*1024), c.Binding.Server.Memory.MiB)
	_, err = w.reservations.EndBinding(w.ctx, w.caller, c.Binding.ID, reservation.Ending{Reason: "done"})
	require.NoError(t, err)
	w.exec(`UPDATE servers SET state = 'retired' WHERE id = $1`, server)

	after, err := w.allocator.DecisionByID(w.ctx, w.caller, made.Decision.ID)
	require.NoError(t, err)
	require.Equal(t, before, after)
	now, err := w.reservations.Reservation(w.ctx, w.caller, made.Reservation.ID)
	require.NoError(t, err)
	require.JSONEq(t, string(made.Reservation.Reason), string(now.Reason))
	require.Equal(t, made.Reservation.Server, now.Server)
	w.sound()
}

// The same request on the same data chooses the same server; other keys spread over equals; a smaller machine comes
// before a cheaper one, a cheaper before a dearer, and one without a price last.
func TestRankingIsRepeatableAndSpreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(20)
	chosen := map[inventory.ServerID]bool{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		first, err := w.allocator.Evaluate(w.ctx, w.caller, key, allocation.Requirements{})
		require.NoError(t, err)
		again, err := w.allocator.Evaluate(w.ctx, w.caller, key, allocation.Requirements{})
		require.NoError(t, err)
		require.Equal(t, slices.Collect(first.Ranked()), slices.Collect(again.Ranked()))
		chosen[slices.Collect(first.Ranked())[0].Server.ID] = true
	}
	require.Greater(t, len(chosen), 1)

	for name, prices := range map[string][]string{"dear": {"50", "EUR"}, "cheap": {"40", "EUR"}} {
		id := w.server(32 * 1024)
		w.exec(`UPDATE servers SET name = $2, price_amount = $3::text::numeric, price_currency = $4 WHERE id = $1`, id, name, prices[0], prices[1])
	}
	unpriced := w.server(32 * 1024)
	w.exec(`UPDATE servers SET name = 'unpriced' WHERE id = $1`, unpriced)
	e, err := w.allocator.Evaluate(w.ctx, w.caller, "", allocation.Requirements{})
	require.NoError(t, err)
	var names []string
	for _, c := range slices.Collect(e.Ranked())[:3] {
		names = append(names, c.Server.Name)
	}
	require.Equal(t, []string{"cheap", "dear", "unpriced"}, names)
	require.Zero(t, one[int](w, `SELECT count(*) FROM decisions`))
}

// Waiting walks again in fresh transactions with fresh lists, and leaves one decision; without the wish the refusal
// comes at once.
//
// Requirements: R20, R37.
func TestPreferWaitWalksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.servers(1)[0]
	rival := w.session().lock(server)
	patient := request("patient")
	patient.Wait = allocation.MaxWait
	set := &gate.Set{}
	again := make(chan struct{})
	set.Arm(gate.ReserveAfterList, func(context.Context) error {
		if set.Reached(gate.ReserveAfterList) == 2 {
			close(again)
		}
		return nil
	})
	done := w.begin(gate.With(w.ctx, set), patient)
	w.wait(again)
	rival.do(`ROLLBACK`)
	a := w.receive(done)
	require.NoError(t, a.err)
	require.Equal(t, allocation.OutcomeReserved, a.outcome.Code)
	require.GreaterOrEqual(t, a.outcome.Decision.Walks, 2)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM decisions`))
	w.sound()
}
