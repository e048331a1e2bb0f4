//go:build gates

package concurrency_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// chapter is what every process of a history is told: the part of one organization.
type chapter struct {
	Org     identity.OrganizationID `json:"org"`
	Servers []inventory.ServerID    `json:"servers"`
	Greedy  []inventory.ServerID    `json:"greedy"` // whose greedy buyers live in this process
	Sweeps  bool                    `json:"sweeps"`
	Seed    uint64                  `json:"seed"`
	Clients int                     `json:"clients"`
	Turns   int                     `json:"turns"`
	Clock   skew                    `json:"clock"`
}

// historyProgram is a service process with its clients inside. It plays one chapter after the other and says every call
// before it is made, and again with its answer.
func historyProgram(ctx context.Context, c *child) error {
	allocator, reservations, err := c.service(ctx)
	if err != nil {
		return err
	}
	reservations = reservations.WatchedBy(allocator.Watcher())
	w := &writer{child: c, process: os.Getenv(nameEnv)}
	for line := range c.told {
		var now chapter
		if err := json.Unmarshal([]byte(line), &now); err != nil {
			return err
		}
		w.clock = now.Clock
		h := &house{chapter: now, writer: w, allocator: allocator, reservations: reservations}
		h.play(ctx)
		c.say("done")
	}
	return nil
}

// writer numbers and writes the records of one process.
type writer struct {
	*child
	mu      sync.Mutex
	process string
	numbers int
	clock   skew
}

// skew is what lies between this machine's clock and the database's, in microseconds: so much is to be added, and it may
// be off by so much either way.
type skew struct {
	Shift int64 `json:"shift"`
	Slack int64 `json:"slack"`
}

// earliest and latest are the database's clock now, as far as it is known.
func (s skew) earliest() int64 { return time.Now().UnixMicro() + s.Shift - s.Slack }

func (s skew) latest() int64 { return time.Now().UnixMicro() + s.Shift + s.Slack }

// call writes a record, makes the call, and writes the record again with the answer.
func (w *writer) call(r *record, do func() (answer string)) {
	w.mu.Lock()
	w.numbers++
	r.Process, r.Number = w.process, w.numbers
	w.mu.Unlock()
	r.Called = w.clock.earliest()
	w.write(r)
	r.Answer = do()
	r.Returned = w.clock.latest()
	w.write(r)
}

func (w *writer) write(r *record) {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	w.say(string(line))
}

// house is one chapter in one process: its clients know of each other's reservations.
type house struct {
	chapter
	*writer
	allocator    *allocation.Allocator
	reservations *reservation.Service

	mu       sync.Mutex
	holds    []allocation.Outcome
	requests []allocation.Request
}

func (h *house) staff() identity.Caller {
	return identity.LocalCaller(h.Org, identity.Actor{Kind: identity.ActorPerson, ID: "tester"})
}

func (h *house) play(ctx context.Context) {
	var clients, others sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	for i := range h.Clients {
		clients.Go(func() { h.client(ctx, i) })
	}
	for i, server := range h.Greedy {
		others.Go(func() { h.greedy(ctx, h.Clients+i, server) })
	}
	if h.Sweeps {
		others.Go(func() { h.sweep(ctx) })
	}
	clients.Wait()
	stop()
	others.Wait()
}

// pause is a client's time to think.
func pause(ctx context.Context, rng *rand.Rand, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(rng.Int64N(int64(most)))):
	}
}

// client takes its turns.
func (h *house) client(ctx context.Context, number int) {
	for turn := range h.Turns {
		rng := rand.New(rand.NewPCG(h.Seed, uint64(number)<<32|uint64(turn))) // whatever became of the turns before
		chance := rand.New(rand.NewPCG(rng.Uint64(), 0))
		t := &turns{house: h, rng: rng, chance: chance, client: number, name: fmt.Sprintf("%s-%d-%d", h.process, number, turn)}
		t.take(ctx)
		pause(ctx, rng, 20*time.Millisecond)
	}
}

// greedy wants one server, again and again, and lets it go at once when it gets it: whoever sells a server that is not
// free will sell it to this one.
func (h *house) greedy(ctx context.Context, number int, server inventory.ServerID) {
	rng := rand.New(rand.NewPCG(h.Seed, uint64(number)))
	for turn := 0; ctx.Err() == nil; turn++ {
		t := &turns{house: h, rng: rng, client: number, name: fmt.Sprintf("greedy-%s-%d-%d", h.process, number, turn)}
		req := request(t.name)
		req.Requirements.Servers = []inventory.ServerID{server}
		whole := context.WithoutCancel(ctx)
		if got := t.reserve(whole, req); got != nil {
			t.cancel(whole, got)
		}
		pause(ctx, rng, 60*time.Millisecond)
	}
}

// asked remembers a request, so that it can be sent again.
func (h *house) asked(req allocation.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, req)
}

// got remembers a hold with its token.
func (h *house) got(r *reservation.Reservation, token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = append(h.holds, allocation.Outcome{Reservation: r, HoldToken: token})
}
