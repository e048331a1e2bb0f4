package postgres

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"allocator/identity"
	"allocator/reservation"
)

const (
	reservationIDPrefix = "res_"
	bindingIDPrefix     = "bnd_"
	decisionIDPrefix    = "dec_"
	eventIDPrefix       = "evt_"
)

// reservationColumns are the columns of reservations (alias r) and of their binding (alias b, may be absent) that
// scanReservation reads. A dead hold reads as expired, by the clock of the statement's row.
const reservationColumns = `r.organization_id, r.id, r.server, r.order_id, r.order_line, r.unit, coalesce(r.customer_ref, ''),
	CASE WHEN r.state = 'held' AND r.expires_at <= clock_timestamp() THEN 'expired' ELSE r.state END,
	r.created_at, r.expires_at, r.max_expires_at, r.ended_at, r.ended_by_kind, r.ended_by,
	coalesce(r.end_reason, ''), coalesce(r.end_text, ''), r.fence, r.generation, r.version, r.idempotency_key,
	r.fingerprint, r.token_key, r.requirements, r.reason, r.decision_id, b.id, coalesce(b.service_id, '')`

// fromReservations joins what reservationColumns needs.
const fromReservations = ` FROM reservations r
	LEFT JOIN bindings b ON b.organization_id = r.organization_id AND b.reservation_id = r.id `

// noBinding stands for b where a reservation cannot have one yet.
const noBinding = ` CROSS JOIN (SELECT NULL::uuid AS id, NULL::text AS service_id) b `

func scanReservation(row pgx.Row, more ...any) (*reservation.Reservation, error) {
	var (
		r                 reservation.Reservation
		id, decision      uuid.UUID
		binding           *uuid.UUID
		server            []byte
		endedKind, ending *string
	)
	targets := []any{
		&r.Organization, &id, &server, &r.Order.OrderID, &r.Order.Line, &r.Order.Unit, &r.CustomerRef, &r.State,
		&r.CreatedAt, &r.ExpiresAt, &r.MaxExpiresAt, &r.EndedAt, &endedKind, &ending,
		&r.EndReason, &r.EndText, &r.Fence, &r.Generation, &r.Version, &r.IdempotencyKey,
		&r.Fingerprint, &r.TokenKey, (*[]byte)(&r.Requirements), (*[]byte)(&r.Reason), &decision, &binding, &r.ServiceID,
	}
	if err := row.Scan(append(targets, more...)...); err != nil {
		return nil, err
	}
	frozen, err := decodeServer(server)
	if err != nil {
		return nil, fmt.Errorf("reservation %s: %w", id, err)
	}
	r.ID, r.Server = reservation.ID(formatID(reservationIDPrefix, id)), frozen
	r.DecisionID = formatID(decisionIDPrefix, decision)
	r.CreatedAt, r.ExpiresAt, r.MaxExpiresAt = r.CreatedAt.UTC(), r.ExpiresAt.UTC(), r.MaxExpiresAt.UTC()
	r.EndedAt, r.EndedBy = inUTC(r.EndedAt), actorOf(endedKind, ending)
	if binding != nil {
		r.BindingID = reservation.BindingID(formatID(bindingIDPrefix, *binding))
	}
	return &r, nil
}

// actorOf reads an actor whose kind may be NULL.
func actorOf(kind, id *string) *identity.Actor {
	if kind == nil {
		return nil
	}
	actor := &identity.Actor{Kind: identity.ActorKind(*kind)}
	if id != nil {
		actor.ID = *id
	}
	return actor
}

// orNull writes an empty text as NULL: the schema's word for "none".
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

const bindingColumns = `b.organization_id, b.id, b.server, b.service_id, b.reservation_id, coalesce(b.order_id, ''),
	coalesce(b.order_line, ''), coalesce(b.unit, 0), b.since, b.created_at, b.created_by_kind, b.created_by,
	coalesce(b.reason, ''), b.ended_at, b.ended_by_kind, b.ended_by, coalesce(b.end_reason, ''), b.delivery_failed, b.version, b.fence`

// scanBinding reads bindingColumns; a server that does not come along is left to the caller.
func scanBinding(row pgx.Row) (*reservation.Binding, error) {
	var (
		b                                reservation.Binding
		id                               uuid.UUID
		from                             *uuid.UUID
		server                           []byte
		made, madeBy, endedKind, endedBy *string
	)
	err := row.Scan(&b.Organization, &id, &server, &b.ServiceID, &from, &b.Order.OrderID,
		&b.Order.Line, &b.Order.Unit, &b.Since, &b.CreatedAt, &made, &madeBy,
		&b.Reason, &b.EndedAt, &endedKind, &endedBy, &b.EndReason, &b.DeliveryFailed, &b.Version, &b.Fence)
	if err != nil {
		return nil, err
	}
	if server != nil {
		if b.Server, err = decodeServer(server); err != nil {
			return nil, fmt.Errorf("binding %s: %w", id, err)
		}
	}
	b.ID = reservation.BindingID(formatID(bindingIDPrefix, id))
	if from != nil {
		b.ReservationID = reservation.ID(formatID(reservationIDPrefix, *from))
	}
	b.CreatedBy, b.EndedBy = *actorOf(made, madeBy), actorOf(endedKind, endedBy)
	b.Since, b.CreatedAt, b.EndedAt = b.Since.UTC(), b.CreatedAt.UTC(), inUTC(b.EndedAt)
	return &b, nil
}

// collect reads every row with scan.
func collect[T any](rows pgx.Rows, err error, scan func(row pgx.Row) (T, error)) ([]T, error) {
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (T, error) { return scan(row) })
	return list, translate(err)
}
