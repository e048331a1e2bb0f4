//go:build gates && unix

package concurrency_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres"
)

// longEnv is set where tests may take a minute each.
const longEnv = "CONCURRENCY_LONG"

// onlyLong skips what takes too long for every run of the tests.
func onlyLong(t *testing.T) {
	t.Helper()
	if os.Getenv(longEnv) == "" {
		t.Skip("it takes a minute: make prove runs it, and so does " + longEnv + "=1")
	}
}

// worldAt is an organization in a database that the test brings itself, with so many servers.
func worldAt(t *testing.T, url string, servers int) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), release: &release{}}
	w.caller = identity.LocalCaller(org, identity.Actor{Kind: identity.ActorPerson, ID: "tester"})
	w.at(url)
	w.exec(`INSERT INTO organizations (id, name, hold_limit) VALUES ($1, 'Acme', 10000)`, org)
	w.manyServers(servers)
	return w
}

// manyServers adds n equal ready servers in one statement.
func (w *world) manyServers(n int) {
	w.t.Helper()
	w.exec(`INSERT INTO servers (organization_id, id, source, external_id, name, site, memory_mib, state)
		SELECT $1, gen_random_uuid(), 'test', n::text, 'server ' || n, 'FSN1', 65536, 'ready' FROM generate_series(1, $2) n`, org, n)
}

// at goes on with another server of the same database.
func (w *world) at(url string) {
	w.t.Helper()
	w.url, w.pool = url, w.open(url+"&statement_timeout=0", 0) // the invariants look at all there is
	w.serve(w.pool)
}

// open is the pool of a service of its own.
func (w *world) open(url string, connections int32) *pgxpool.Pool {
	w.t.Helper()
	pool, err := postgres.Open(w.ctx, url, postgres.PoolOptions{MaxConns: connections})
	require.NoError(w.t, err)
	w.t.Cleanup(pool.Close)
	return pool
}

// replica is one more service over the same database.
func (w *world) replica(url string) (*allocation.Allocator, *reservation.Service) {
	w.t.Helper()
	tokens, err := reservation.ParseTokenKeys(tokenKeys)
	require.NoError(w.t, err)
	pool := w.open(url, 0)
	allocator := allocation.New(postgres.NewAllocations(pool), w.release, tokens)
	return allocator, reservation.NewService(postgres.NewReservations(pool), tokens).WatchedBy(allocator.Watcher())
}

// What a client is told, in one word each.
const (
	toldHeld      = "held"
	toldSold      = "converted"
	toldCancelled = "cancelled"
	toldNothing   = "unavailable" // nothing was changed
	toldUnknown   = "unknown"
	toldGone      = "given up" // the client's own patience ended before anything was sent
)

// load are clients of several services that reserve, and convert or cancel what they got. What they were told is kept
// outside of the database.
type load struct {
	*world
	name     string        // of its orders, apart from those of another load
	patience time.Duration // of a client with one call
	mostSold int           // half of what was free, so that there is something to sell however long the load lasts
	stop     func()        // ends the load and waits for the clients

	mu          sync.Mutex
	acks        map[string]ack // by the name of the request: the last word about it
	counts      map[string]int
	fences      map[int64]reservation.ID // that clients were shown
	fencedTwice []int64                  // fences of two reservations
	failures    []string                 // answers that nobody should get
	unanswered  []string                 // names of requests whose outcome is unknown
}

// loads counts them.
var loads atomic.Uint64

// ack is what a client was told for certain.
type ack struct {
	id   reservation.ID
	word string
}

// shop is what a client reaches the service through.
type shop interface {
	reserve(ctx context.Context, name string) (r *reservation.Reservation, word string, err error)
	convert(ctx context.Context, id reservation.ID, service string) error
	cancel(ctx context.Context, id reservation.ID) error
}

// underLoad starts so many clients of each of so many services on the database.
func (w *world) underLoad(url string, services, clients int) *load {
	w.t.Helper()
	shops := make([]shop, services)
	for i := range shops {
		allocator, reservations := w.replica(url)
		shops[i] = &desk{allocator, reservations}
	}
	return w.visited(clients, shops...)
}

// desk is a service in the test's own process.
type desk struct {
	allocator    *allocation.Allocator
	reservations *reservation.Service
}

func (d *desk) reserve(ctx context.Context, name string) (*reservation.Reservation, string, error) {
	o, err := d.allocator.Reserve(ctx, tester, request(name))
	if err != nil || o.Refused() {
		return nil, codeOf(o), err
	}
	return o.Reservation, toldHeld, nil
}

func (d *desk) convert(ctx context.Context, id reservation.ID, service string) error {
	_, err := d.reservations.Convert(ctx, tester, id, "", service)
	return err
}

func (d *desk) cancel(ctx context.Context, id reservation.ID) error {
	_, err := d.reservations.Cancel(ctx, tester, id, "", reservation.Cancellation{Reason: reservation.CancelOther})
	return err
}

// visited starts so many clients of each shop.
func (w *world) visited(clients int, shops ...shop) *load {
	w.t.Helper()
	l := &load{
		world: w, name: strconv.FormatUint(loads.Add(1), 10), patience: 3 * time.Second, mostSold: one[int](w, free) / 2,
		acks: map[string]ack{}, fences: map[int64]reservation.ID{}, counts: map[string]int{},
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var all sync.WaitGroup
	for s, at := range shops {
		for c := range clients {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					l.turn(context.WithoutCancel(ctx), at, fmt.Sprintf("%s-%d-%d-%d", l.name, s, c, n))
				}
			})
		}
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	w.t.Cleanup(l.stop)
	return l
}

// turn is one order from its reservation to its end.
func (l *load) turn(ctx context.Context, at shop, name string) {
	var id reservation.ID
	word := l.call(ctx, func(ctx context.Context) (string, error) {
		r, word, err := at.reserve(ctx, name)
		if r != nil {
			id = r.ID
			l.shown(r)
		}
		return word, err
	})
	l.note(name, id, word)
	if word != toldHeld {
		<-time.After(rand.N(20 * time.Millisecond)) // a client that is refused does not come again at once
		return
	}
	word = l.call(ctx, func(ctx context.Context) (string, error) {
		if rand.IntN(4) == 0 && l.told(toldSold) < l.mostSold {
			return toldSold, at.convert(ctx, id, "service-"+name)
		}
		return toldCancelled, at.cancel(ctx, id)
	})
	l.note(name, id, word)
}

func codeOf(o *allocation.Outcome) string {
	if o == nil {
		return ""
	}
	return string(o.Code)
}

// call waits for an answer as long as a client does, and says in a word what it was.
func (l *load) call(ctx context.Context, do func(ctx context.Context) (string, error)) string {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	word, err := do(ctx)
	switch {
	case err == nil:
		return word
	case errors.Is(err, reservation.ErrOutcomeUnknown):
		return toldUnknown
	case errors.Is(err, reservation.ErrUnavailable):
		return toldNothing
	case ctx.Err() != nil:
		return toldGone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, err.Error())
	return "failed"
}

func (l *load) note(name string, id reservation.ID, word string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[word]++
	if word == toldUnknown {
		l.unanswered = append(l.unanswered, name)
	}
	if slices.Contains([]string{toldHeld, toldSold, toldCancelled}, word) {
		l.acks[name] = ack{id, word}
	}
}

func (l *load) shown(r *reservation.Reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first, again := l.fences[r.Fence]; again && first != r.ID {
		l.fencedTwice = append(l.fencedTwice, r.Fence)
	}
	l.fences[r.Fence] = r.ID
}

// told is how often the clients were told that by now.
func (l *load) told(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[word]
}

// until waits for so many more answers of the kind.
func (l *load) until(more int, word string) {
	l.t.Helper()
	want := l.told(word) + more
	require.Eventually(l.t, func() bool { return l.told(word) >= want }, 2*patience, 5*time.Millisecond, "%d more of %q; %s", more, word, l)
}

// String tells the counts.
func (l *load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var words []string
	for _, word := range slices.Sorted(maps.Keys(l.counts)) {
		words = append(words, fmt.Sprintf("%d %s", l.counts[word], word))
	}
	return strings.Join(words, ", ")
}

// requireUnansweredNotBegun asserts that what got no answer was not done either: it came over a connection that the
// kernel took and the service did not.
func (l *load) requireUnansweredNotBegun() {
	l.t.Helper()
	for _, name := range l.unanswered {
		want := "nothing"
		if l.acks[name].word == toldHeld {
			want = "held"
		}
		stands := one[string](l.world, `SELECT coalesce((SELECT state FROM reservations WHERE idempotency_key = $1), 'nothing')`, "key-"+name)
		require.Equal(l.t, want, stands, "what was begun got no answer")
	}
}

// lost are the acknowledgements that the database does not know of any more. What the clients were told beside them is
// held against what a client may hear.
func (l *load) lost() (lost []string) {
	l.t.Helper()
	l.stop()
	require.Empty(l.t, l.failures, "answers that nobody should get")
	require.NotEmpty(l.t, l.acks)
	l.exec(`ANALYZE`) // or what looks for them, and for the invariants, would take its time
	states := map[string]string{}
	rows, err := l.pool.Query(l.ctx, `SELECT idempotency_key, 'res_' || replace(id::text, '-', '') || ' ' || state FROM reservations`)
	require.NoError(l.t, err)
	defer rows.Close()
	for rows.Next() {
		var key, state string
		require.NoError(l.t, rows.Scan(&key, &state))
		states[key] = state
	}
	require.NoError(l.t, rows.Err())
	for name, a := range l.acks {
		stands := states["key-"+name]
		kept := stands == string(a.id)+" "+a.word || a.word == toldHeld && strings.HasPrefix(stands, string(a.id)+" ")
		if !kept {
			lost = append(lost, fmt.Sprintf("%s %s is %q", name, a.word, stands))
		}
	}
	return lost
}
