//go:build gates

package concurrency_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres"
)

// Only what is ready is ever held, of a server in each state, and a server that was taken out before a request began,
// and not put back before it ended, is not what it gets, although the process that is asked may not know of it yet.
//
// Requirements: R32. Cases: CA-02.
func TestOnlyReadyServersAreHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	states := []inventory.State{
		inventory.StatePlanned, inventory.StateStaged, inventory.StateCleaning, inventory.StateMaintenance, inventory.StateFailed, inventory.StateRetired,
	}
	ready, flips := w.server(2048), w.server(1024) // which ranks first
	for _, state := range states {
		w.exec(`UPDATE servers SET state = $2 WHERE id = $1`, w.server(512), state)
	}
	allocator, reservations := w.replica(w.url) // another process than the operator's
	var turn atomic.Int64                       // odd while the server is out
	var done atomic.Bool
	var operator sync.WaitGroup
	operator.Go(func() {
		change := reservation.StateChange{ServerID: serverID(flips), Reason: "flip", Force: true}
		for !done.Load() {
			change.State = inventory.StateMaintenance
			if _, err := w.reservations.ChangeServerState(w.ctx, w.caller, change); err != nil {
				t.Errorf("out: %v", err)
			}
			turn.Add(1)
			<-time.After(20 * time.Millisecond) // some requests of the others begin and end meanwhile
			turn.Add(1)
			change.State = inventory.StateReady
			if _, err := w.reservations.ChangeServerState(w.ctx, w.caller, change); err != nil {
				t.Errorf("back: %v", err)
			}
		}
	})
	var out, in atomic.Int64
	together(2, func(buyer int) {
		for i := range 60 {
			before := turn.Load()
			o, err := allocator.Reserve(w.ctx, w.caller, request(fmt.Sprintf("%d-%d", buyer, i)))
			if err != nil {
				t.Errorf("reserve: %v", err)
				return
			}
			if o.Code != allocation.OutcomeReserved {
				continue
			}
			switch rawID(string(o.Reservation.Server.ID)) {
			case ready:
				in.Add(1)
			case flips:
				out.Add(1)
				if before%2 == 1 && turn.Load() == before {
					t.Error("a server was held that had been taken out before")
				}
			default:
				t.Errorf("%s was held", o.Reservation.Server.ID)
			}
			_, _ = reservations.Cancel(w.ctx, w.caller, o.Reservation.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
		}
	})
	done.Store(true)
	operator.Wait()
	t.Logf("held: %d times the one that flips, %d times the other", out.Load(), in.Load())
	require.Positive(t, in.Load())
	w.sound()
}

// One request takes one server and a batch takes what it was given, whatever the planner believes of the tables.
//
// Requirements: R21, R60. Cases: CA-05.
func TestOneRequestTakesOneServerWhateverThePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config, err := pgxpool.ParseConfig(w.url)
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["enable_material"] = "off"
	pool, err := pgxpool.NewWithConfig(w.ctx, config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	w.serve(pool)
	w.manyServers(2000) // and no ANALYZE
	w.held("one")
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations`))
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM occupancy`))

	w.dueHolds(1000)
	const due = `SELECT count(*) FROM reservations WHERE state = 'held' AND expires_at <= clock_timestamp()`
	for left := 900; left >= 0; left -= 100 {
		moved, err := postgres.NewReservations(pool).ExpireDue(w.ctx, 100)
		require.NoError(t, err)
		require.Equal(t, 100, moved)
		require.Equal(t, left, one[int](w, due))
	}
}

// The same request over the same inventory gets the same server from every process, and each time.
//
// Requirements: R35. Cases: CA-06.
func TestSameRequestSameServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(8)
	chosen := map[inventory.ServerID]int{}
	for range 20 {
		w.serve(w.pool) // another process
		e, err := w.allocator.Evaluate(w.ctx, w.caller, request("same").IdempotencyKey, allocation.Requirements{})
		require.NoError(t, err)
		chosen[slices.Collect(e.Ranked())[0].Server.ID]++
	}
	require.Equal(t, map[inventory.ServerID]int{w.held("same").Reservation.Server.ID: 20}, chosen)
}

// What came back is sold again when somebody has said that it is clean, and what could not be delivered is not.
//
// Cases: CA-09.
func TestReturnedServerWaitsForSomebody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	best := w.server(1024)
	sell := func(name string) *reservation.Binding {
		c, err := w.reservations.Convert(w.ctx, w.caller, w.held(name).Reservation.ID, "", "service-"+name)
		require.NoError(t, err)
		require.Equal(t, serverID(best), c.Binding.Server.ID)
		return c.Binding
	}
	first := sell("first")
	_, err := w.reservations.EndBinding(w.ctx, w.caller, first.ID, reservation.Ending{Reason: "left"})
	require.NoError(t, err)
	w.refused(w.reserve(w.ctx, request("too early")), allocation.OutcomeNoCapacity, allocation.CauseNothingMatches)
	_, err = w.reservations.ChangeServerState(w.ctx, w.caller, reservation.StateChange{ServerID: serverID(best), State: inventory.StateReady, Reason: "wiped"})
	require.NoError(t, err)
	second := sell("second")

	other := w.server(2048)
	_, err = w.reservations.EndBinding(w.ctx, w.caller, second.ID, reservation.Ending{Reason: "no boot", DeliveryFailed: true})
	require.NoError(t, err)
	require.Equal(t, "failed", one[string](w, `SELECT state FROM servers WHERE id = $1`, best))
	require.Equal(t, serverID(other), w.held("third").Reservation.Server.ID)
	w.sound()
}

// Five reasons for nothing, each true and none of them another's.
//
// Requirements: R33, R36. Cases: XP-01.
func TestEveryReasonForNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		servers func(w *world)
		wanted  allocation.Requirements
		cause   allocation.Cause
		code    string
	}{
		"no servers":     {func(*world) {}, allocation.Requirements{}, allocation.CauseInventoryEmpty, ""},
		"another site":   {func(w *world) { w.servers(2) }, allocation.Requirements{Sites: []string{"NBG1"}}, allocation.CauseNothingMatches, "site"},
		"in maintenance": {func(w *world) { w.servers(2); w.exec(`UPDATE servers SET state = 'maintenance'`) }, allocation.Requirements{}, allocation.CauseNothingMatches, "state_maintenance"},
		"all held":       {func(w *world) { w.servers(2); w.held("x"); w.held("y") }, allocation.Requirements{}, allocation.CauseAllHeld, "held"},
		"too small":      {func(w *world) { w.servers(2) }, allocation.Requirements{Memory: allocation.MemoryRequirements{MiBMin: 1 << 20}}, allocation.CauseNothingMatches, "memory_size"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.servers(w)
			req := request("a")
			req.Requirements = c.wanted
			d := w.refused(w.reserve(w.ctx, req), allocation.OutcomeNoCapacity, c.cause)
			counts := map[string]int{}
			for _, each := range d.Counts {
				counts[string(each.Code)] = each.Servers
			}
			want := map[string]int{}
			if c.code != "" {
				want[c.code] = 2
			}
			require.Equal(t, want, counts)
		})
	}
}

// What was decided is read as it was, with names and hardware as they were frozen, and every refusal is listed, when the
// server is retired and its record purged, and the organization closes.
//
// Requirements: R38. Cases: XP-04.
func TestDecisionsOutliveServerAndOrganization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.servers(1)[0]
	w.exec(`UPDATE servers SET name = 'as it was', cpu_model = 'EPYC 7502P', price_amount = 89.90, price_currency = 'EUR'`)
	made := w.held("a")
	var refusals []allocation.DecisionID
	for i := range 5 {
		refusals = append(refusals, w.reserve(w.ctx, request(fmt.Sprint("b", i))).Decision.ID)
	}
	before, err := w.allocator.DecisionByID(w.ctx, w.caller, made.Decision.ID)
	require.NoError(t, err)
	w.cancelled(made.Reservation.ID)
	w.exec(`UPDATE servers SET state = 'retired', name = 'gone', serial = NULL, cpu_model = NULL, price_amount = NULL, price_currency = NULL WHERE id = $1`, server)
	w.exec(`UPDATE organizations SET closing = true, name = 'closed'`)
	w.serve(w.pool) // a process that never knew it otherwise

	after, err := w.allocator.DecisionByID(w.ctx, w.caller, made.Decision.ID)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Len(t, after.Frozen.Candidates, 1)
	require.Equal(t, "as it was", after.Frozen.Candidates[0].Name)
	r, err := w.reservations.Reservation(w.ctx, w.caller, made.Reservation.ID)
	require.NoError(t, err)
	require.Equal(t, made.Reservation.Server, r.Server)
	require.Equal(t, "as it was EPYC 7502P 89.90", fmt.Sprint(r.Server.Name, " ", r.Server.CPU.Model, " ", r.Server.Price.Amount))
	listed, err := w.allocator.Decisions(w.ctx, w.caller, allocation.DecisionFilter{Outcomes: []allocation.OutcomeCode{allocation.OutcomeNoCapacity}, Limit: 100})
	require.NoError(t, err)
	var ids []allocation.DecisionID
	for _, d := range listed {
		ids = append(ids, d.ID)
		again, err := w.allocator.DecisionByID(w.ctx, w.caller, d.ID)
		require.NoError(t, err)
		require.Equal(t, allocation.CauseAllHeld, again.Cause)
	}
	require.ElementsMatch(t, refusals, ids)
}
