package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/events"
)

// Oversold is a server that is held and sold at once.
type Oversold struct {
	Organization, ServerID, ReservationID, BindingID string
}

// Oversell looks for what the arbiter does not let happen: it finds what somebody did to the tables with their triggers
// off, and a mistake in the triggers themselves.
type Oversell struct{ pool *pgxpool.Pool }

// NewOversell makes the audit.
func NewOversell(pool *pgxpool.Pool) *Oversell { return &Oversell{pool: pool} }

// findOversoldSQL judges both tables in one snapshot, or a correct conversion in between would look like an oversale.
// Each pair of hold and binding leaves one event, however often it is found.
var findOversoldSQL = `
	WITH oversold AS (
		SELECT r.organization_id, r.server_id, r.id AS reservation_id, b.id AS binding_id, r.order_id
		FROM reservations r
		JOIN bindings b ON b.organization_id = r.organization_id AND b.server_id = r.server_id AND b.ended_at IS NULL
		WHERE r.state = 'held'
	), told AS (
		INSERT INTO events (organization_id, id, type, actor_kind, actor_id, reservation_id, binding_id, server_id, order_id)
		SELECT organization_id, uuid_v7(), '` + string(events.ServerOversold) + `', 'system', $1, reservation_id, binding_id, server_id, order_id
		FROM oversold o
		WHERE NOT EXISTS (
			SELECT FROM events e WHERE e.organization_id = o.organization_id AND e.reservation_id = o.reservation_id
				AND e.binding_id = o.binding_id AND e.type = '` + string(events.ServerOversold) + `')
	)
	SELECT organization_id, server_id, reservation_id, binding_id FROM oversold ORDER BY organization_id, server_id`

// Find returns every server that is held and sold at once, over all organizations, and leaves an event for each that has
// none yet, in the name of the job. Two at once could leave two events: run it under a lock.
func (o *Oversell) Find(ctx context.Context, job string) ([]Oversold, error) {
	rows, err := o.pool.Query(ctx, findOversoldSQL, job)
	found, err := collect(rows, err, func(row pgx.Row) (Oversold, error) {
		var one Oversold
		var server, reserved, bound uuid.UUID
		err := row.Scan(&one.Organization, &server, &reserved, &bound)
		one.ServerID, one.ReservationID = formatID(serverIDPrefix, server), formatID(reservationIDPrefix, reserved)
		one.BindingID = formatID(bindingIDPrefix, bound)
		return one, err
	})
	return found, wrapped("look for servers that are held and sold at once", err)
}
