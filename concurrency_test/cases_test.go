//go:build gates

package concurrency_test

import (
	"context"
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
	"allocator/store/postgres/gate"
)

// Fifty buyers of one server, round after round: one gets it, and whoever comes again as told hears in the end that
// there is nothing. What is free is counted from the rows, and is right after each round.
//
// Requirements: R16, R18. Cases: HO-01.
func TestFiftyBuyersRoundAfterRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	for round := range 10 {
		stop := w.auditor()
		outcomes := make([]*allocation.Outcome, 50)
		together(len(outcomes), func(i int) {
			var err error
			for again := true; again; again = err == nil && outcomes[i].Code == allocation.OutcomeContended {
				if outcomes[i], err = w.allocator.Reserve(w.ctx, w.caller, request(fmt.Sprintf("%d-%d", round, i))); err != nil {
					t.Errorf("buyer %d: %v", i, err)
				}
			}
		})
		stop()
		require.False(t, t.Failed())
		require.Equal(t, map[string]int{"reserved": 1, "no_capacity/all_held": 49}, tally(outcomes), "round %d", round)
		require.Zero(t, one[int](w, free))
		for _, o := range outcomes {
			if o.Code == allocation.OutcomeReserved {
				w.cancelled(o.Reservation.ID)
			}
		}
		require.Equal(t, 1, one[int](w, free))
	}
	w.sound()
}

// Whoever begins anew with the same order line finds their own hold, not a sold-out shop, and its deadline stays.
//
// Requirements: R46. Cases: HO-06.
func TestOwnHoldIsInNobodysOwnWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	first := w.held("a")
	again := request("a")
	again.IdempotencyKey = "another"
	second := w.reserve(w.ctx, again)
	require.Equal(t, allocation.OutcomeExisting, second.Code)
	require.Equal(t, first.Reservation.ID, second.Reservation.ID)
	require.Equal(t, first.Reservation.Server, second.Reservation.Server)
	require.Equal(t, first.Reservation.ExpiresAt, second.Reservation.ExpiresAt)
	require.Equal(t, first.HoldToken, second.HoldToken)
	w.refused(w.reserve(w.ctx, request("b")), allocation.OutcomeNoCapacity, allocation.CauseAllHeld)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations WHERE state = 'held'`))
	w.sound()
}

// A customer at the limit is refused for the limit, others are not, and a cancellation makes room.
//
// Cases: HO-11.
func TestHoldLimitMakesRoomAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(10)
	w.exec(`UPDATE organizations SET hold_limit = 3`)
	of := func(customer, name string) *allocation.Outcome {
		req := request(name)
		req.CustomerRef = customer
		return w.reserve(w.ctx, req)
	}
	var last *allocation.Outcome
	for i := range 3 {
		last = of("a", fmt.Sprint(i))
		require.Equal(t, allocation.OutcomeReserved, last.Code)
	}
	require.Equal(t, allocation.OutcomeHoldLimit, of("a", "fourth").Code)
	require.Equal(t, 7, one[int](w, free), "nothing was taken for it")
	require.Equal(t, allocation.OutcomeReserved, of("b", "other").Code)
	w.cancelled(last.Reservation.ID)
	require.Equal(t, allocation.OutcomeReserved, of("a", "fourth").Code)
	w.sound()
}

// Paid after the deadline: refused in full, whether the server is free or another's by then, with an event for
// support, and nothing is bound, here or elsewhere.
//
// Requirements: R51, R53. Cases: CO-02.
func TestPaidAfterTheDeadline(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]bool{"the server is still free": false, "another holds it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			late := w.held("late").Reservation
			w.expire(late.ID)
			if others {
				w.held("other")
			}
			for range 2 {
				_, err := w.reservations.Convert(w.ctx, w.caller, late.ID, "", "service")
				require.ErrorIs(t, err, reservation.ErrExpired)
			}
			require.Positive(t, one[int](w, `SELECT count(*) FROM events WHERE type = 'reservation.conversion_refused' AND reservation_id = $1`, rawID(string(late.ID))))
			require.Zero(t, one[int](w, `SELECT count(*) FROM bindings`))
			if others {
				require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations WHERE state = 'held' AND order_id = 'order-other'`))
			}
			w.sound()
		})
	}
}

// What is sold stays sold, whatever comes late: its old deadline, sweeps, renewals, cancellations.
//
// Requirements: R13, R53. Cases: CO-03.
func TestSoldStaysSold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	r := w.held("a").Reservation
	w.deadlineIn(10 * time.Second)
	c, err := w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
	require.NoError(t, err)
	events := one[int](w, `SELECT count(*) FROM events`)
	require.Eventually(t, func() bool { return one[bool](w, `SELECT expires_at <= clock_timestamp() FROM reservations`) }, patience, 10*time.Millisecond)
	for range 5 {
		require.Zero(t, swept(w, w.ctx, w.reservations))
		var sold *reservation.AlreadyConvertedError
		_, err = w.reservations.Cancel(w.ctx, w.caller, r.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
		require.ErrorAs(t, err, &sold)
		_, err = w.reservations.Renew(w.ctx, w.caller, r.ID, "")
		require.ErrorAs(t, err, &sold)
		_, err = w.reservations.TakeOver(w.ctx, w.caller, r.ID, "late")
		require.ErrorAs(t, err, &sold)
	}
	still, err := w.reservations.Binding(w.ctx, w.caller, c.Binding.ID)
	require.NoError(t, err)
	require.True(t, still.Active())
	require.Equal(t, c.Binding, still)
	require.Equal(t, events, one[int](w, `SELECT count(*) FROM events`))
}

// Retiring asks who has the server: a hold or a binding is in the way, an ended one is not. A binding whose server's row
// somebody removed by hand can still be ended, and blocks nothing.
//
// Cases: CO-11.
func TestRetiringAndWhatIsInItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(3)
	held, sold, gone := w.held("held").Reservation, w.held("sold").Reservation, w.held("gone").Reservation
	c, err := w.reservations.Convert(w.ctx, w.caller, sold.ID, "", "service")
	require.NoError(t, err)
	w.cancelled(gone.ID)
	change := func(r *reservation.Reservation, to inventory.State) error {
		_, err := w.reservations.ChangeServerState(w.ctx, w.caller, reservation.StateChange{ServerID: r.Server.ID, State: to, Reason: "old"})
		return err
	}
	require.NoError(t, change(gone, inventory.StateMaintenance))
	require.ErrorIs(t, change(held, inventory.StateRetired), reservation.ErrServerInUse)
	require.ErrorIs(t, change(sold, inventory.StateRetired), reservation.ErrServerInUse)
	require.NoError(t, change(gone, inventory.StateRetired))
	_, err = w.reservations.EndBinding(w.ctx, w.caller, c.Binding.ID, reservation.Ending{Reason: "done"})
	require.NoError(t, err)
	require.NoError(t, change(sold, inventory.StateRetired))

	orphan, err := w.reservations.Convert(w.ctx, w.caller, held.ID, "", "orphan")
	require.NoError(t, err)
	tx, err := w.pool.Begin(w.ctx)
	require.NoError(t, err)
	_, err = tx.Exec(w.ctx, `SET LOCAL session_replication_role = replica`) // past every trigger
	require.NoError(t, err)
	_, err = tx.Exec(w.ctx, `DELETE FROM servers WHERE id = $1`, rawID(string(held.Server.ID)))
	require.NoError(t, err)
	require.NoError(t, tx.Commit(w.ctx))
	_, err = w.reservations.EndBinding(w.ctx, w.caller, orphan.Binding.ID, reservation.Ending{Reason: "nobody has it"})
	require.NoError(t, err)
	require.Zero(t, one[int](w, `SELECT count(*) FROM occupancy`))
	w.sound()
}

// No refusal uses up its key: each repetition is a real attempt, until one reserves.
//
// Cases: ID-05.
func TestRefusalUsesUpNoKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.servers(1)[0]
	first := w.held("first").Reservation
	for range 2 {
		w.refused(w.reserve(w.ctx, request("k")), allocation.OutcomeNoCapacity, allocation.CauseAllHeld)
	}
	w.cancelled(first.ID)
	tx, err := w.pool.Begin(w.ctx)
	require.NoError(t, err)
	_, err = tx.Exec(w.ctx, `SELECT FROM servers WHERE id = $1 FOR UPDATE`, server)
	require.NoError(t, err)
	w.refused(w.reserve(w.ctx, request("k")), allocation.OutcomeContended, allocation.CauseServersTaken)
	require.NoError(t, tx.Rollback(w.ctx))
	w.held("k")
	require.Equal(t, 4, one[int](w, `SELECT count(*) FROM decisions d WHERE d.order_id = 'order-k'`), "each is on record")
	w.sound()
}

// Only what is ready is ever held, of a server in each state, and a server that was taken out before a request began,
// and not put back before it ended, is not what it gets.
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
	var turn atomic.Int64 // odd while the server is out
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
			<-time.After(2 * time.Millisecond) // some requests of the others begin and end meanwhile
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
			o, err := w.allocator.Reserve(w.ctx, w.caller, request(fmt.Sprintf("%d-%d", buyer, i)))
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
			_, _ = w.reservations.Cancel(w.ctx, w.caller, o.Reservation.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
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

// What was decided is read as it was when the server is retired and the organization closes.
//
// Requirements: R38. Cases: XP-04.
func TestDecisionsOutliveServerAndOrganization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.servers(1)[0]
	made := w.held("a")
	refusal := w.reserve(w.ctx, request("b")).Decision
	before, err := w.allocator.DecisionByID(w.ctx, w.caller, made.Decision.ID)
	require.NoError(t, err)
	w.cancelled(made.Reservation.ID)
	w.exec(`UPDATE servers SET state = 'retired', name = 'gone', serial = NULL WHERE id = $1`, server)
	w.exec(`UPDATE organizations SET closing = true`)
	after, err := w.allocator.DecisionByID(w.ctx, w.caller, made.Decision.ID)
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = w.allocator.DecisionByID(w.ctx, w.caller, refusal.ID)
	require.NoError(t, err)
	r, err := w.reservations.Reservation(w.ctx, w.caller, made.Reservation.ID)
	require.NoError(t, err)
	require.Equal(t, made.Reservation.Server, r.Server)
}

// Locks that keep siblings apart last as long as a transaction: under load there are two for each that is open, and
// afterwards none.
//
// Cases: JO-11.
func TestNoAdvisoryLockStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manyServers(200)
	const locks = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	most := int(w.pool.Config().MaxConns) * 2
	together(8, func(i int) {
		for n := range 25 {
			if _, err := w.allocator.Reserve(w.ctx, w.caller, request(fmt.Sprintf("%d-%d", i, n))); err != nil {
				t.Errorf("reserve: %v", err)
			}
			var now int
			if err := w.pool.QueryRow(w.ctx, locks).Scan(&now); err != nil || now > most {
				t.Errorf("%d locks, %v", now, err)
			}
		}
	})
	require.Zero(t, one[int](w, locks))
	require.Equal(t, 200, one[int](w, `SELECT count(*) FROM occupancy`))
}

// A panic anywhere inside a change leaves nothing of it, and the same request does it afterwards.
//
// Cases: CO-08, OP-09. Faults: F-C9.
func TestPanicInsideAChange(t *testing.T) {
	t.Parallel()
	for deed, places := range placesOf {
		for _, place := range places {
			t.Run(deed+" at "+string(place), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, deed)
				require.PanicsWithValue(t, "on purpose", func() {
					set := &gate.Set{}
					set.Arm(place, func(context.Context) error { panic("on purpose") })
					_ = s.do(gate.With(s.ctx, set))
				})
				s.untouched()
				require.Zero(t, s.pool.Stat().AcquiredConns())
				require.NoError(t, s.again())
				s.sound()
			})
		}
	}
}

// cancelled cancels a reservation that must be held.
func (w *world) cancelled(id reservation.ID) {
	w.t.Helper()
	r, err := w.reservations.Cancel(w.ctx, w.caller, id, "", reservation.Cancellation{Reason: reservation.CancelOther})
	require.NoError(w.t, err)
	require.Equal(w.t, reservation.StateCancelled, r.State)
}
