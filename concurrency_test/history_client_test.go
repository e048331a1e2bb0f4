//go:build gates

package concurrency_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
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
func (s skew) latest() int64   { return time.Now().UnixMicro() + s.Shift + s.Slack }

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
	rng := rand.New(rand.NewPCG(h.Seed, uint64(number)))
	for turn := range h.Turns {
		t := &turns{house: h, rng: rng, client: number, name: fmt.Sprintf("%s-%d-%d", h.process, number, turn)}
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

func (h *house) sweep(ctx context.Context) {
	rng := rand.New(rand.NewPCG(h.Seed, 0))
	for ctx.Err() == nil {
		if _, err := h.reservations.Sweep(ctx, batch); err != nil && ctx.Err() == nil {
			panic(err)
		}
		pause(ctx, rng, 200*time.Millisecond)
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

// turns are what a client can do in one turn.
type turns struct {
	*house
	rng    *rand.Rand
	client int
	name   string
}

// take takes one of the turns by chance, and sometimes gives up waiting for the answer.
func (t *turns) take(ctx context.Context) {
	known := t.known(ctx)
	if t.rng.IntN(12) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(t.rng.Int64N(int64(10*time.Millisecond))))
		defer cancel()
	}
	switch n := t.rng.IntN(100); {
	case n < 35 || known == nil:
		t.reserve(ctx, request(t.name))
	case n < 42:
		t.again(ctx)
	case n < 54:
		t.renew(ctx, known)
	case n < 59:
		t.cancel(ctx, known)
	case n < 69:
		t.convert(ctx, known)
	case n < 73:
		t.takeOver(ctx, known)
	case n < 83:
		t.end(ctx)
	case n < 93:
		t.state(ctx)
	default:
		t.atTheDeadline(ctx, known)
	}
}

// atTheDeadline does something with a hold a few milliseconds before its deadline or after it.
func (t *turns) atTheDeadline(ctx context.Context, hold *allocation.Outcome) {
	spread := time.Duration(t.rng.Int64N(int64(10*time.Millisecond))) - 5*time.Millisecond
	select {
	case <-ctx.Done():
		return
	case <-time.After(min(time.Until(hold.Reservation.ExpiresAt)+spread, historyHold)):
	}
	deeds := []func(context.Context, *allocation.Outcome){t.convert, t.renew, t.cancel, t.takeOver}
	deeds[t.rng.IntN(len(deeds))](ctx, hold)
}

// known is a hold that this house knows, with its token, or one of the latest of the organization, without.
func (t *turns) known(ctx context.Context) *allocation.Outcome {
	t.mu.Lock()
	holds := slices.Clone(t.holds)
	t.mu.Unlock()
	if len(holds) > 0 && t.rng.IntN(3) > 0 {
		// The youngest are the likeliest, and the old ones are still tried.
		at := len(holds) - 1 - int(float64(len(holds))*t.rng.Float64()*t.rng.Float64()*t.rng.Float64())
		return &holds[max(at, 0)]
	}
	list, err := t.reservations.Reservations(ctx, t.staff(), reservation.Filter{Limit: 6})
	if err != nil || len(list) == 0 {
		return nil
	}
	return &allocation.Outcome{Reservation: list[t.rng.IntN(len(list))]}
}

// caller is the holder, with the token, or staff, without one.
func (t *turns) caller(hold *allocation.Outcome) identity.Caller {
	if hold.HoldToken == "" {
		return t.staff()
	}
	return identity.Caller{
		Organization: t.Org, Scopes: identity.NewScopeSet(identity.ScopeCheckout, identity.ScopeOrders),
		Actor: identity.Actor{Kind: identity.ActorKey, ID: "key_checkout"},
	}
}

// about begins the record of a call about a hold.
func (t *turns) about(what op, hold *allocation.Outcome) *record {
	r := &record{Client: t.client, Op: what, Server: hold.Reservation.Server.ID, Reservation: hold.Reservation.ID}
	if hold.HoldToken != "" {
		r.Generation = hold.Reservation.Generation
	}
	return r
}

func (t *turns) reserve(ctx context.Context, req allocation.Request) *allocation.Outcome {
	r := &record{Client: t.client, Op: opReserve, Key: req.IdempotencyKey}
	if len(req.Requirements.Servers) == 1 {
		r.Server = req.Requirements.Servers[0]
	}
	t.asked(req)
	var made *allocation.Outcome
	t.call(r, func() string {
		o, err := t.allocator.Reserve(ctx, t.staff(), req)
		switch {
		case err != nil:
			return lost(err)
		case o.Code == allocation.OutcomeReserved:
			made = o
			t.got(o.Reservation, o.HoldToken)
			r.about(o.Reservation)
			r.At = o.Reservation.CreatedAt.UnixMicro()
			return "reserved"
		case o.Refused():
			return refusalOf(o)
		default: // the same again: what it is told is the present state
			r.Op = opRead
			r.about(o.Reservation)
			return string(o.Reservation.State)
		}
	})
	return made
}

// about notes which reservation an answer is about.
func (r *record) about(res *reservation.Reservation) {
	r.Server, r.Reservation, r.Until = res.Server.ID, res.ID, res.ExpiresAt.UnixMicro()
}

func refusalOf(o *allocation.Outcome) string {
	if o.Code == allocation.OutcomeContended {
		return string(o.Decision.Cause)
	}
	return string(o.Code)
}

// again sends an earlier request once more, with the same key or for the same line with another.
func (t *turns) again(ctx context.Context) {
	t.mu.Lock()
	if len(t.requests) == 0 {
		t.mu.Unlock()
		return
	}
	req := t.requests[t.rng.IntN(len(t.requests))]
	t.mu.Unlock()
	if t.rng.IntN(2) == 0 {
		req.IdempotencyKey = t.name
	}
	t.reserve(ctx, req)
}

func (t *turns) renew(ctx context.Context, hold *allocation.Outcome) {
	r := t.about(opRenew, hold)
	t.call(r, func() string {
		now, err := t.reservations.Renew(ctx, t.caller(hold), r.Reservation, hold.HoldToken)
		if err == nil {
			r.Until = now.ExpiresAt.UnixMicro()
		}
		return lost(err)
	})
}

func (t *turns) cancel(ctx context.Context, hold *allocation.Outcome) {
	r := t.about(opCancel, hold)
	t.call(r, func() string {
		now, err := t.reservations.Cancel(ctx, t.caller(hold), r.Reservation, hold.HoldToken, reservation.Cancellation{Reason: reservation.CancelOther})
		if err != nil {
			return lost(err)
		}
		r.At = now.EndedAt.UnixMicro()
		return string(now.State)
	})
}

func (t *turns) convert(ctx context.Context, hold *allocation.Outcome) {
	r := t.about(opConvert, hold)
	service := "for " + string(r.Reservation)
	if t.rng.IntN(2) == 0 {
		service = "for " + t.name
	}
	t.call(r, func() string {
		c, err := t.reservations.Convert(ctx, t.caller(hold), r.Reservation, hold.HoldToken, service)
		if err != nil {
			return lost(err)
		}
		r.Binding, r.At = c.Binding.ID, c.Binding.Since.UnixMicro()
		if c.Repeated {
			return "repeated"
		}
		return "ok"
	})
}

func (t *turns) takeOver(ctx context.Context, hold *allocation.Outcome) {
	r := t.about(opTakeOver, hold)
	r.Generation = 0
	t.call(r, func() string {
		now, err := t.reservations.TakeOver(ctx, t.staff(), r.Reservation, "staff")
		if err == nil {
			t.got(now, t.reservations.HoldToken(now))
		}
		return lost(err)
	})
}

// end ends one of the active bindings.
func (t *turns) end(ctx context.Context) {
	active := true
	list, err := t.reservations.Bindings(ctx, t.staff(), reservation.BindingFilter{Active: &active, Limit: 10})
	if err != nil || len(list) == 0 {
		return
	}
	b := list[t.rng.IntN(len(list))]
	r := &record{Client: t.client, Op: opEnd, Server: b.Server.ID, Binding: b.ID}
	t.call(r, func() string {
		_, err := t.reservations.EndBinding(ctx, t.staff(), b.ID, reservation.Ending{Reason: "over"})
		return lost(err)
	})
}

// state makes a server ready, mostly, or takes it out.
func (t *turns) state(ctx context.Context) {
	r := &record{Client: t.client, Op: opState, Server: t.Servers[t.rng.IntN(len(t.Servers))], State: inventory.StateReady}
	if t.rng.IntN(4) == 0 {
		r.State, r.Force = inventory.StateMaintenance, t.rng.IntN(2) == 0
	}
	t.call(r, func() string {
		_, err := t.reservations.ChangeServerState(ctx, t.staff(), reservation.StateChange{
			ServerID: r.Server, State: r.State, Reason: "round", Force: r.Force,
		})
		return lost(err)
	})
}

// lost is an answer in a word, or that it was lost. "Nothing was changed" is believed, and so is tested.
func lost(err error) string {
	switch {
	case errors.Is(err, reservation.ErrOutcomeUnknown):
		return unknownAnswer
	case errors.Is(err, reservation.ErrUnavailable):
		return unavailable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unknownAnswer
	default:
		return word(err)
	}
}

// unavailable is the answer of a call that was told to have changed nothing.
const unavailable = "unavailable"
