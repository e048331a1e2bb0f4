package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"allocator/events"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

var refusedConversionSQL = `INSERT INTO events (organization_id, id, type, actor_kind, actor_id, reservation_id, server_id, order_id, decision_id, data)
	SELECT organization_id, $3, '` + string(events.ReservationConversionRefused) + `', $4, $5, id, server_id, order_id, decision_id,
		jsonb_build_object('service_id', $6::text, 'why', $7::text)
	FROM reservations WHERE organization_id = $1 AND id = $2`

// RecordRefusedConversion implements reservation.Tx.
func (c *changing) RecordRefusedConversion(
	_ context.Context, r *reservation.Reservation, serviceID, why string, by identity.Actor,
) error {
	id, _ := parseID(reservationIDPrefix, string(r.ID))
	c.later(refusedConversionSQL, r.Organization, id, newID(), by.Kind, orNull(by.ID), serviceID, why)
	return nil
}

// The server is that of the reservation, which comes back with the next statement.
var insertBindingSQL = `WITH made AS (
		INSERT INTO bindings (organization_id, id, server_id, service_id, reservation_id, order_id, order_line, unit,
			since, created_by_kind, created_by, decided_at, hold_expires_at, server, fence)
		SELECT r.organization_id, $3, r.server_id, $4, r.id, r.order_id, r.order_line, r.unit,
			clock.at, $5, $6, clock.at, r.expires_at, r.server, r.fence
		FROM reservations r, (SELECT clock_timestamp() AS at) clock
		WHERE r.organization_id = $1 AND r.id = $2 AND ` + isHeld + ` AND r.expires_at > clock.at
			AND ($7::bigint IS NULL OR r.generation = $7)
		RETURNING *
	) SELECT ` + strings.Replace(bindingColumns, "b.server", "NULL", 1) + ` FROM made b`

// The binding stands before the state changes; without it nothing is moved.
var convertSQL = `WITH moved AS (
		UPDATE reservations r
		SET state = 'converted', ended_at = clock_timestamp(), ended_by_kind = $3, ended_by = $4, version = version + 1
		WHERE organization_id = $1 AND id = $2 AND ` + isHeld + `
			AND EXISTS (SELECT FROM bindings WHERE organization_id = $1 AND id = $5 AND reservation_id = $2)
		RETURNING *
	), told AS (
		INSERT INTO events (organization_id, id, type, actor_kind, actor_id, reservation_id, binding_id, server_id, order_id,
			decision_id, data)
		SELECT organization_id, uuid_v7(), '` + string(events.ReservationConverted) + `', $3, $4, id, $5, server_id, order_id, decision_id,
			jsonb_build_object('service_id', $6::text, 'fence', fence)
		FROM moved
	), audited AS (
		INSERT INTO audit (` + auditColumns + `) SELECT $7, $8, $9, $10, $11, $12, $13, $14, $15 FROM moved
	) SELECT ` + reservationColumns + ` FROM moved r CROSS JOIN (SELECT $5::uuid AS id, $6::text AS service_id) b`

// Convert implements reservation.Store. All its steps travel together, and each writes only if it may: the binding while
// the reservation is held, the reservation behind its binding, event and audit entry with the reservation.
func (s *Reservations) Convert(ctx context.Context, p reservation.Promotion) (*reservation.Conversion, error) {
	id, known := parseID(reservationIDPrefix, string(p.Reservation))
	if !known {
		return nil, nil
	}
	binding, by := newID(), p.By
	told := auditArgs(p.Audit(reservation.BindingID(formatID(bindingIDPrefix, binding))))
	var sold reservation.Conversion
	err := inTx(ctx, s.pool, func(_ context.Context, t *tx) error {
		sold = reservation.Conversion{}
		t.queue = append(lockSteps(p.Organization, id),
			step{at: gate.ChangeAfterLock},
			step{
				sql: insertBindingSQL, read: readBinding(&sold.Binding),
				args: []any{p.Organization, id, binding, p.ServiceID, by.Kind, orNull(by.ID), orAny(p.Generation)},
			},
			step{at: gate.ConvertAfterBinding},
			readReservation(&sold.Reservation, convertSQL,
				append([]any{p.Organization, id, by.Kind, orNull(by.ID), binding, p.ServiceID}, told...)...),
			step{at: gate.ConvertBeforeCommit})
		return nil
	})
	if err != nil || sold.Binding == nil {
		return nil, err
	}
	sold.Binding.Server = sold.Reservation.Server
	return &sold, nil
}

func orAny(generation int64) pgtype.Int8 {
	return pgtype.Int8{Int64: generation, Valid: generation != 0}
}

func readBinding(into **reservation.Binding) func(pgx.Rows) error {
	return oneRow(new(bool), func(row pgx.Rows) error {
		b, err := scanBinding(row)
		*into = b
		return err
	})
}
