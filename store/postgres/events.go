package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/events"
)

// Events reads what the transactions of the other stores have written. It implements events.Store.
type Events struct{ pool *pgxpool.Pool }

var _ events.Store = (*Events)(nil)

// NewEvents makes the store.
func NewEvents(pool *pgxpool.Pool) *Events { return &Events{pool: pool} }

const eventsOfOrderSQL = `SELECT organization_id, id, type, at, actor_kind, coalesce(actor_id, ''),
		reservation_id, binding_id, server_id, coalesce(order_id, ''), decision_id, data
	FROM event_feed WHERE organization_id = $1 AND order_id = $2 ORDER BY at, id`

// EventsOfOrder implements events.Store. Events of bindings and servers that belong to the order's reservations carry
// its id themselves. The order of ids is that of the clocks that made them; events of one reservation are written one
// after the other under its lock, and a tie within a millisecond is decided by the time of the database.
func (e *Events) EventsOfOrder(ctx context.Context, organizationID, orderID string) ([]events.Event, error) {
	rows, err := e.pool.Query(ctx, eventsOfOrderSQL, organizationID, orderID)
	return collect(rows, err, scanEvent)
}

func scanEvent(row pgx.Row) (events.Event, error) {
	var e events.Event
	var id uuid.UUID
	var reserved, bound, server, decision *uuid.UUID
	err := row.Scan(&e.OrganizationID, &id, &e.Type, &e.At, &e.ActorKind, &e.ActorID,
		&reserved, &bound, &server, &e.OrderID, &decision, &e.Data)
	e.ID, e.At = formatID(eventIDPrefix, id), e.At.UTC()
	e.ReservationID, e.BindingID = optionalID(reservationIDPrefix, reserved), optionalID(bindingIDPrefix, bound)
	e.ServerID, e.DecisionID = optionalID(serverIDPrefix, server), optionalID(decisionIDPrefix, decision)
	return e, err
}

// optionalID formats an id that may be NULL.
func optionalID(prefix string, id *uuid.UUID) string {
	if id == nil {
		return ""
	}
	return formatID(prefix, *id)
}
