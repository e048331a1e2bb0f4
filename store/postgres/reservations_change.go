package postgres

import (
	"context"

	"github.com/google/uuid"

	"allocator/events"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// changing is the transaction of one change. It implements reservation.Tx.
type changing struct{ *tx }

// Every change locks the server row first and the reservation row second, each in a statement of its own, and reads in
// a third, whose clock and snapshot are younger than both locks.
const (
	lockServerOfReservationSQL = `SELECT set_config('allocator.locked_server', locked.id::text, true)
		FROM (SELECT id FROM servers WHERE organization_id = $1
			AND id = (SELECT server_id FROM reservations WHERE organization_id = $1 AND id = $2) FOR UPDATE) locked`
	lockReservationSQL = `SELECT FROM reservations WHERE organization_id = $1 AND id = $2 FOR UPDATE`
)

// isHeld is r.state = 'held' for a row that is named by its id. Said like that, the planner cannot use the partial indexes
// of held rows, which look cheaper than the primary key for as long as its statistics know of few such rows.
const isHeld = `coalesce(r.state, '') = 'held'`

// LockReservation implements reservation.Tx.
func (c *changing) LockReservation(
	ctx context.Context, org identity.OrganizationID, id reservation.ID,
) (*reservation.Reservation, error) {
	key, known := parseID(reservationIDPrefix, string(id))
	if !known {
		return nil, reservation.ErrNotFound
	}
	var r *reservation.Reservation
	err := c.send(ctx,
		append(lockSteps(org, key), readReservation(&r, reservationSQL, org, key), step{at: gate.ChangeAfterLock})...,
	)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, reservation.ErrNotFound
	case r.State == reservation.StateExpired && r.EndedAt == nil: // dead, and not moved aside yet
		return r, c.expireNow(ctx, r)
	}
	return r, nil
}

// lockSteps lock the server of a reservation and then the reservation.
func lockSteps(org identity.OrganizationID, id uuid.UUID) []step {
	return []step{
		{sql: lockServerOfReservationSQL, args: []any{org, id}},
		{at: gate.ChangeAfterServer},
		{sql: lockReservationSQL, args: []any{org, id}},
	}
}

// change runs a statement whose CTE moved changes the reservation under the lock, writes its event, and reads what it
// is now into r; false if nothing was changed.
func (c *changing) change(ctx context.Context, r *reservation.Reservation, sql string, more ...any) (bool, error) {
	id, _ := parseID(reservationIDPrefix, string(r.ID))
	var changed *reservation.Reservation
	err := c.send(ctx, readReservation(&changed, sql, append([]any{r.Organization, id}, more...)...))
	if err != nil || changed == nil {
		return false, err
	}
	*r = *changed
	return true, nil
}

// changed ends such a statement: the event of the given type, by the actor in $3 and $4, with the given data.
func changed(eventType, data string) string {
	return `, told AS (
		INSERT INTO events (organization_id, id, type, actor_kind, actor_id, reservation_id, server_id, order_id, decision_id, data)
		SELECT organization_id, uuid_v7(), '` + eventType + `', $3, $4, id, server_id, order_id, decision_id, ` + data + `
		FROM moved
	) SELECT ` + reservationColumns + ` FROM moved r ` + noBinding
}

var renewSQL = `WITH moved AS (
		UPDATE reservations r SET version = r.version + 1,
			expires_at = least(greatest(r.expires_at, clock.at + make_interval(secs => o.hold_seconds)), r.max_expires_at)
		FROM organizations o, (SELECT clock_timestamp() AS at) clock
		WHERE r.organization_id = $1 AND r.id = $2 AND o.id = $1 AND ` + isHeld + ` AND r.expires_at > clock.at
			AND least(clock.at + make_interval(secs => o.hold_seconds), r.max_expires_at) > r.expires_at
		RETURNING r.*
	)` + changed(string(events.ReservationRenewed), `jsonb_build_object('expires_at', expires_at)`)

// Renew implements reservation.Tx.
func (c *changing) Renew(ctx context.Context, r *reservation.Reservation, by identity.Actor) error {
	moved, err := c.change(ctx, r, renewSQL, by.Kind, orNull(by.ID))
	if err != nil || moved {
		return err
	}
	return c.orExpired(ctx, r, reservation.ErrRenewalLimit)
}

var cancelSQL = `WITH moved AS (
		UPDATE reservations r SET state = 'cancelled', ended_at = clock.at, ended_by_kind = $3, ended_by = $4,
			end_reason = $5, end_text = $6, version = r.version + 1
		FROM (SELECT clock_timestamp() AS at) clock
		WHERE r.organization_id = $1 AND r.id = $2 AND ` + isHeld + ` AND r.expires_at > clock.at
		RETURNING r.*
	)` + changed(string(events.ReservationCancelled), `jsonb_build_object('reason_code', end_reason)`)

// Cancel implements reservation.Tx.
func (c *changing) Cancel(ctx context.Context, r *reservation.Reservation, cancel reservation.Cancellation) error {
	moved, err := c.change(ctx, r, cancelSQL, cancel.By.Kind, orNull(cancel.By.ID), cancel.Reason, orNull(cancel.Text))
	if err != nil {
		return err
	}
	if !moved {
		return c.expireNow(ctx, r)
	}
	return nil
}

var takeOverSQL = `WITH moved AS (
		UPDATE reservations r SET generation = r.generation + 1, fence = nextval('reservation_fence'), version = r.version + 1
		FROM (SELECT clock_timestamp() AS at) clock
		WHERE r.organization_id = $1 AND r.id = $2 AND ` + isHeld + ` AND r.expires_at > clock.at
		RETURNING r.*
	)` + changed(string(events.ReservationTakenOver), `jsonb_build_object('fence', fence, 'reason', $5::text)`)

// TakeOver implements reservation.Tx.
func (c *changing) TakeOver(ctx context.Context, r *reservation.Reservation, reason string, by identity.Actor) error {
	moved, err := c.change(ctx, r, takeOverSQL, by.Kind, orNull(by.ID), reason)
	if err != nil || moved {
		return err
	}
	return c.orExpired(ctx, r, reservation.ErrExpired)
}

// orExpired says why nothing was changed under the lock: the deadline passed meanwhile, or otherwise.
func (c *changing) orExpired(ctx context.Context, r *reservation.Reservation, otherwise error) error {
	if err := c.expireNow(ctx, r); err != nil {
		return err
	}
	if r.State == reservation.StateExpired {
		return reservation.ErrExpired
	}
	return otherwise
}

// expireNow moves the locked reservation to expired if its deadline has passed, and reads it again.
func (c *changing) expireNow(ctx context.Context, r *reservation.Reservation) error {
	id, _ := parseID(reservationIDPrefix, string(r.ID))
	var now *reservation.Reservation
	err := c.send(ctx,
		step{sql: expireHoldSQL, args: []any{r.Organization, id}},
		readReservation(&now, reservationSQL, r.Organization, id),
	)
	if err == nil && now != nil {
		*r = *now
	}
	return err
}

// Audit implements reservation.Tx.
func (c *changing) Audit(entry events.AuditEntry) { c.later(insertAuditSQL, auditArgs(entry)...) }
