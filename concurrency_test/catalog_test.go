//go:build gates

package concurrency_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/gate"
)

// remembering puts the world's allocator on a catalog that reads nothing new by itself for an hour, as another process
// whose news are late; the world's own services do not tell it of anything.
func (w *world) remembering() *world {
	w.t.Helper()
	tokens, err := reservation.ParseTokenKeys(tokenKeys)
	require.NoError(w.t, err)
	other := *w
	other.allocator = allocation.New(postgres.NewAllocations(w.pool), w.release, tokens, allocation.MaxAge(time.Hour))
	return &other
}

// A catalog that has not heard of it yet never makes the service say that there is nothing while something is free: the
// database is read once more before that is said.
//
// Requirements: R36, R61.
func TestStaleCatalogNeverHidesAFreeServer(t *testing.T) {
	t.Parallel()
	frees := map[string]func(w *world, o *allocation.Outcome){
		"cancelled": func(w *world, o *allocation.Outcome) {
			_, err := w.reservations.Cancel(w.ctx, w.caller, o.Reservation.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
			require.NoError(w.t, err)
		},
		"expired":       func(w *world, o *allocation.Outcome) { w.expire(o.Reservation.ID) },
		"a new machine": func(w *world, _ *allocation.Outcome) { w.servers(1) },
		"sold, ended and cleaned": func(w *world, o *allocation.Outcome) {
			c, err := w.reservations.Convert(w.ctx, w.caller, o.Reservation.ID, "", "service")
			require.NoError(w.t, err)
			_, err = w.reservations.EndBinding(w.ctx, w.caller, c.Binding.ID, reservation.Ending{Reason: "over"})
			require.NoError(w.t, err)
			w.exec(`UPDATE servers SET state = 'ready'`)
		},
		"corrected by raw SQL": func(w *world, _ *allocation.Outcome) {
			w.exec(`UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'person', end_reason = 'other'`)
		},
	}
	for name, free := range frees {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.servers(1)
			late := w.remembering()
			o := w.held("a")
			late.refused(late.reserve(w.ctx, request("b")), allocation.OutcomeNoCapacity, allocation.CauseAllHeld)
			free(w, o)
			got := late.reserve(w.ctx, request("c"))
			require.Equal(t, allocation.OutcomeReserved, got.Code, "%s", got.Decision.Text)
			w.sound("I12 one event per transition")
		})
	}
}

// A catalog that believes taken servers to be free sells none of them: the lock step judges again. Once the list has
// proved stale it is read anew within the request: a free server that the catalog did not know is found, and when there is
// none, that is what is said, and not that others were faster.
//
// Requirements: R34, R49.
func TestStaleCatalogSellsNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(3)
	late := w.remembering()
	first := late.held("first")
	_, err := w.reservations.Cancel(w.ctx, w.caller, first.Reservation.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
	require.NoError(t, err)
	for i := range 3 {
		o := w.held(fmt.Sprint(i))
		_, err := w.reservations.Convert(w.ctx, w.caller, o.Reservation.ID, "", fmt.Sprint("service-", i))
		require.NoError(t, err)
	}
	d := late.refused(late.reserve(w.ctx, request("late")), allocation.OutcomeNoCapacity, allocation.CauseAllSold)
	require.Equal(t, 2, d.Stale)
	w.servers(1)
	require.Equal(t, allocation.OutcomeReserved, late.reserve(w.ctx, request("later")).Code)
	require.Equal(t, 4, one[int](w, `SELECT count(*) FROM occupancy`))
	w.sound()
}

// A server that the catalog believes free is sold, and locked by somebody at this moment: nothing fits, whatever the
// catalog believes, so the answer is not that others were faster.
//
// Requirements: R35, R36.
func TestStaleCatalogIsNoContention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.servers(1)[0]
	late := w.remembering()
	first := late.held("first")
	_, err := w.reservations.Cancel(w.ctx, w.caller, first.Reservation.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
	require.NoError(t, err)
	late.refused(late.reserve(w.ctx, unfit("a")), allocation.OutcomeNoCapacity, allocation.CauseNothingMatches) // and learns that it is free
	_, err = w.reservations.Convert(w.ctx, w.caller, w.held("b").Reservation.ID, "", "service")
	require.NoError(t, err)
	w.session().lock(server)
	d := late.refused(late.reserve(w.ctx, request("c")), allocation.OutcomeNoCapacity, allocation.CauseAllSold)
	require.Equal(t, 1, d.Skipped)
	w.sound()
}

// unfit asks for what no server is.
func unfit(name string) allocation.Request {
	req := request(name)
	req.Requirements.Sites = []string{"nowhere"}
	return req
}

// A change that was begun before a read and committed after it is not lost: the next read begins at the oldest
// transaction that was not over, whatever the order of commits.
func TestCatalogMissesNoLateCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.servers(1)[0]
	late := w.remembering()
	s := w.session().do(`BEGIN`).do(`UPDATE servers SET state = 'failed' WHERE id = $1`, server)
	younger := w.servers(1)[0] // begun later, committed earlier
	w.exec(`UPDATE servers SET state = 'retired' WHERE id = $1`, younger)
	nothing := request("nothing")
	nothing.Requirements.Sites = []string{"nowhere"}
	late.reserve(w.ctx, nothing) // reads: the first is ready still
	s.do(`COMMIT`)
	d := late.refused(late.reserve(w.ctx, nothing), allocation.OutcomeNoCapacity, allocation.CauseNothingMatches)
	counts := map[allocation.Code]int{}
	for _, c := range d.Counts {
		counts[c.Code] = c.Servers
	}
	require.Equal(t, map[allocation.Code]int{"site": 2, "state_failed": 1, "state_retired": 1}, counts)
}

// asked is a store that tells when it is asked for news outside of any transaction.
type asked struct {
	*postgres.Allocations

	news chan struct{}
}

// News implements allocation.Store.
func (a *asked) News(ctx context.Context, of identity.OrganizationID, since allocation.Horizon) (allocation.News, error) {
	select {
	case a.news <- struct{}{}:
	default: // nobody wants to know
	}
	return a.Allocations.News(ctx, of, since)
}

// What is new has to be read, and a request that has no connection yet is about to read it. One that has the last
// connection, in the middle of its walk, does not wait for that: the other waits for its connection.
//
// Requirements: R32. Faults: F-L5.
func TestWalkDoesNotWaitForWhoWaitsForItsConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	pool, err := postgres.Open(w.ctx, w.url, postgres.PoolOptions{MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	tokens, err := reservation.ParseTokenKeys(tokenKeys)
	require.NoError(t, err)
	store := &asked{postgres.NewAllocations(pool), make(chan struct{})}
	w.allocator = allocation.New(store, w.release, tokens)
	w.fill()
	first := w.paused(gate.ReserveAfterOpen, unfit("first"))
	w.allocator.Watcher().ServersChanged(org)
	second := w.begin(w.ctx, request("second"))
	w.wait(store.news)
	w.refused(first().outcome, allocation.OutcomeNoCapacity, allocation.CauseNothingMatches)
	require.Equal(t, allocation.OutcomeReserved, w.receive(second).outcome.Code)
}
