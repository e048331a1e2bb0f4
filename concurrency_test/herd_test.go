//go:build gates && unix

package concurrency_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/client"
	"allocator/reservation"
	"allocator/store/postgres"
)

// A hundred callers over two hundred equal servers, and over a hundred, of which each would have to find its own: nearly
// all get one at the first try. Over ten, exactly ten.
//
// Faults: F-L1.
func TestNoHerd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ callers, servers, least int }{{100, 200, 97}, {100, 100, 97}, {100, 10, 10}} {
		t.Run(fmt.Sprint(c.callers, " over ", c.servers), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(c.servers)
			tokens, err := reservation.ParseTokenKeys(tokenKeys)
			require.NoError(t, err)
			first := make([]int, number(t, roundsEnv, 3))
			for round := range first {
				w.allocator = allocation.New(postgres.NewAllocations(w.pool), w.release, tokens) // as after a start
				outcomes := make([]*allocation.Outcome, c.callers)
				together(c.callers, func(i int) { outcomes[i] = w.reserve(w.ctx, request(fmt.Sprint(round, "-", i))) })
				counts := tally(outcomes)
				require.GreaterOrEqual(t, counts["reserved"], c.least, "round %d: %v", round, counts)
				require.LessOrEqual(t, counts["reserved"], c.servers, "round %d: %v", round, counts)
				first[round] = counts["reserved"]
				w.sound()
				w.givenBack()
			}
			t.Logf("tried: %d times %d callers over %d servers, at least %d at the first try", len(first), c.callers, c.servers, slices.Min(first))
		})
	}
}

// Through a service's door: nearly all get a server at the first try, and who is refused is told that others were faster
// and when to come again. Who does as it is told gets one, to the last server; so that somebody is refused for certain,
// somebody else works on some of the servers for a while.
//
// Faults: F-L1.
func TestRefusedOfAHerdComeAgainWhenTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ servers, locked int }{
		"over 200 servers": {200, 0},
		"over 100 servers": {100, 0},
		"over 100 servers, somebody works on 3 of them": {100, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			servers := w.servers(c.servers)
			d := w.daemon(daemonOptions{})
			first := make([]int, number(t, roundsEnv, 1))
			for round := range first {
				first[round] = d.herd(fmt.Sprint("herd-", round, "-"), servers[:c.locked])
				require.GreaterOrEqual(t, first[round], 97-c.locked)
				require.LessOrEqual(t, first[round], herdSize-c.locked)
				require.Equal(t, herdSize, one[int](w, `SELECT count(*) FROM occupancy`))
				w.sound()
				w.givenBack()
			}
			t.Logf("tried: %d times %d clients %s, at least %d at the first try, all in the end", len(first), herdSize, name, slices.Min(first))
		})
	}
}

const herdSize = 100

// herd are clients that want a server at once, and come again as often as they are told to, until they have one. The
// locked servers are let go of when as many were refused. How many got theirs at the first try is returned.
func (d *daemon) herd(name string, locked []uuid.UUID) (first int) {
	d.t.Helper()
	others := d.session().do(`BEGIN`).do(`SELECT FROM servers WHERE organization_id = $1 AND id = ANY ($2) FOR UPDATE`, org, locked)
	var refused atomic.Int64
	failures, causes := make([]error, herdSize), make([]map[client.Cause]int, herdSize)
	over := make(chan struct{})
	api := d.counter().api
	go func() {
		defer close(over)
		together(herdSize, func(i int) { causes[i], failures[i] = d.comeAgain(api, fmt.Sprint(name, i), &refused) })
	}()
	require.Eventually(d.t, func() bool { return int(refused.Load()) >= len(locked) }, patience, time.Millisecond)
	others.do(`COMMIT`)
	d.wait(over)
	require.NoError(d.t, errors.Join(failures...))
	for i := range causes {
		if len(causes[i]) == 0 {
			first++
		} else {
			d.t.Logf("%s%d was refused for %v", name, i, causes[i])
		}
	}
	return first
}

// comeAgain wants a server until it has one, and tells how often it was refused for what.
func (d *daemon) comeAgain(api *client.ClientWithResponses, name string, times *atomic.Int64) (map[client.Cause]int, error) {
	causes := map[client.Cause]int{}
	for {
		_, err := api.CreateReservationWithResponse(d.ctx, &client.CreateReservationParams{IdempotencyKey: "key-" + name},
			client.ReservationRequest{OrderID: "order-" + name, OrderLine: "1"})
		refused, ok := errors.AsType[*client.Error](err)
		if !ok || refused.Code != "contended" || refused.RetryAfter == 0 || causes[refused.Cause] == 20 {
			return causes, err
		}
		causes[refused.Cause]++
		times.Add(1)
		<-time.After(refused.RetryAfter)
	}
}

// givenBack cancels every hold.
func (w *world) givenBack() {
	w.t.Helper()
	held, err := w.reservations.Reservations(w.ctx, w.caller, reservation.Filter{States: []reservation.State{reservation.StateHeld}, Limit: 500})
	require.NoError(w.t, err)
	for _, r := range held {
		_, err := w.reservations.Cancel(w.ctx, w.caller, r.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
		require.NoError(w.t, err)
	}
	require.Zero(w.t, one[int](w, `SELECT count(*) FROM occupancy`))
}
