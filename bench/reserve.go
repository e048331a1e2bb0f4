package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"allocator/allocation"
	"allocator/reservation"
)

// reserve makes reservations in process, with everything that a checkout's request has: a key, an order line, a
// customer, requirements of the mix; its decision and its event.
func (w *world) reserve() *contender { return w.reserveAs(w.mixed) }

func (w *world) reserveAs(draw drawing) *contender {
	var wanted []order
	return &contender{
		name: "reserve", most: w.most(),
		prepare: func(ctx context.Context, round string) error {
			wanted = draw(round)
			return w.warm(ctx, round)
		},
		do: func(ctx context.Context, i int) (bool, error) {
			outcome, err := w.allocator.Reserve(ctx, w.caller, wanted[i].request())
			return err == nil && outcome.Code == allocation.OutcomeReserved, err
		},
	}
}

// refuse asks for what nobody has. no_capacity is said after one more read of the database, so this is the dearest answer.
func (w *world) refuse() *contender {
	var names string
	return &contender{
		name: "refuse",
		prepare: func(ctx context.Context, round string) error {
			names = round
			return w.warm(ctx, round)
		},
		do: func(ctx context.Context, i int) (bool, error) {
			outcome, err := w.allocator.Reserve(ctx, w.caller, request(fmt.Sprint(names, i), impossible))
			return err == nil && outcome.Code == allocation.OutcomeNoCapacity, err
		},
	}
}

// warm lets the allocator take notice of what was changed since the last round.
func (w *world) warm(ctx context.Context, round string) error {
	_, err := w.allocator.Reserve(ctx, w.caller, request("warm-"+round, allocation.Requirements{}))
	return err
}

// holdSQL holds many servers at once, through the triggers, for those who are to sell them.
const holdSQL = `INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at,
		max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
	SELECT $1, made.id, s.id, $4 || made.n, '1', 'key', clock_timestamp() + interval '1 day', clock_timestamp() + interval '1 day',
		$4 || made.n, '\x00', 'bench', '{}', '{}', freeze_server(s), made.id
	FROM unnest($2::uuid[], $3::uuid[]) WITH ORDINALITY AS made (id, server_id, n)
	JOIN servers s ON s.organization_id = $1 AND s.id = made.server_id`

// convert sells servers that are held already.
func (w *world) convert() *contender {
	var held []uuid.UUID
	var names string
	return &contender{
		name: "convert", most: w.most(),
		prepare: func(ctx context.Context, round string) error {
			names, held = round, make([]uuid.UUID, w.most())
			for i := range held {
				held[i] = uuid.Must(uuid.NewV7())
			}
			_, err := w.admin.Exec(ctx, holdSQL, org, held, w.servers.free[:len(held)], round)
			return err
		},
		do: func(ctx context.Context, i int) (bool, error) {
			id := reservation.ID(fmt.Sprintf("res_%x", held[i][:]))
			sold, err := w.reservations.Convert(ctx, w.caller, id, "", fmt.Sprint("svc-", names, i))
			if err == nil && sold.Repeated {
				err = errors.New("a reservation was sold before its turn")
			}
			return err == nil, err
		},
	}
}
