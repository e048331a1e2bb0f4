package bench

import (
	"context"
	"math/rand/v2"
	"strconv"

	"allocator/allocation"
	"allocator/reservation"
)

// reserve makes reservations in process, with everything that a checkout's request has: a key, an order line, a
// customer, requirements of the mix; its decision and its event.
func (w *world) reserve(seed uint64) *contender {
	var requests []allocation.Request
	most := w.most()
	return &contender{
		name: "reserve", most: most,
		prepare: func(ctx context.Context, round string) error {
			requests = drawRequests(most, round, seed)
			return w.warm(ctx, round)
		},
		do: func(ctx context.Context, i int) (bool, error) {
			outcome, err := w.allocator.Reserve(ctx, w.caller, requests[i])
			return err == nil && outcome.Code == allocation.OutcomeReserved, err
		},
	}
}

// warm lets the allocator take notice of what was changed since the last round.
func (w *world) warm(ctx context.Context, round string) error {
	_, err := w.allocator.Reserve(ctx, w.caller, request("warm-"+round, allocation.Requirements{}))
	return err
}

// drawRequests makes the requests of one round, the same for every contender of it but for their names.
func drawRequests(n int, round string, seed uint64) []allocation.Request {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same requests for the same seed
	requests := make([]allocation.Request, n)
	for i := range requests {
		requests[i] = request(round+strconv.Itoa(i), drawClass(random).wanted)
	}
	return requests
}

func request(name string, wanted allocation.Requirements) allocation.Request {
	return allocation.Request{
		IdempotencyKey: name,
		Order:          reservation.OrderLine{OrderID: name, Line: "1", Unit: 1},
		CustomerRef:    "customer-" + name,
		Requirements:   wanted,
	}
}
