package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"allocator/events"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

const (
	lockServerSQL = `SELECT set_config('allocator.locked_server', locked.id::text, true)
		FROM (SELECT id FROM servers WHERE organization_id = $1 AND id = $2 FOR UPDATE) locked`
	occupiedSQL = `SELECT ` + serverColumns + `, o.reservation_id, o.binding_id
		FROM servers s
		LEFT JOIN occupancy o ON o.organization_id = s.organization_id AND o.server_id = s.id
		WHERE s.organization_id = $1 AND s.id = $2`

	// A dead hold that is being swept or reclaimed at this moment is waited for: it holds nothing any more, so it must not
	// be called in use, and whoever moves it waits for nobody.
	expireHoldOfServerSQL = `WITH moved AS (
		UPDATE reservations SET state = 'expired', ended_at = clock_timestamp(), ended_by_kind = 'allocator', version = version + 1
		WHERE organization_id = $1 AND server_id = $2 AND state = 'held' AND expires_at <= clock_timestamp()
		RETURNING *
	) ` + tellMoved
)

// LockServer implements reservation.Tx.
func (c *changing) LockServer(
	ctx context.Context, org identity.OrganizationID, id inventory.ServerID,
) (*reservation.Occupied, error) {
	key, known := parseID(serverIDPrefix, string(id))
	if !known {
		return nil, reservation.ErrNotFound
	}
	var occupied *reservation.Occupied
	err := c.send(ctx,
		step{sql: lockServerSQL, args: []any{org, key}},
		step{at: gate.ChangeAfterServer},
		step{sql: expireHoldOfServerSQL, args: []any{org, key}},
		step{sql: occupiedSQL, args: []any{org, key}, read: oneRow(&known, func(row pgx.Rows) (err error) {
			occupied, err = scanOccupied(row)
			return err
		})},
		step{at: gate.ChangeAfterLock},
	)
	if err == nil && !known {
		err = reservation.ErrNotFound
	}
	return occupied, err
}

func scanOccupied(row pgx.Rows) (*reservation.Occupied, error) {
	var record serverRow
	var held, bound *[16]byte
	if err := row.Scan(append(record.targets(), &held, &bound)...); err != nil {
		return nil, err
	}
	server, err := record.server()
	occupied := &reservation.Occupied{Server: &server}
	if held != nil {
		occupied.HeldBy = reservation.ID(formatID(reservationIDPrefix, *held))
	}
	if bound != nil {
		occupied.BoundBy = reservation.BindingID(formatID(bindingIDPrefix, *bound))
	}
	return occupied, err
}

var setStateSQL = `WITH moved AS (
		UPDATE servers SET state = $3, state_reason = $4, version = version + 1, updated_at = clock_timestamp()
		WHERE organization_id = $1 AND id = $2
		RETURNING *
	), told AS (
		INSERT INTO events (organization_id, id, type, actor_kind, actor_id, server_id, data)
		SELECT organization_id, uuid_v7(), '` + string(events.ServerStateChanged) + `', $5, $6, id,
			jsonb_build_object('state', state, 'reason', state_reason, 'forced', $7::boolean)
		FROM moved
	) SELECT ` + serverColumns + ` FROM moved s`

// SetServerState implements reservation.Tx.
func (c *changing) SetServerState(
	ctx context.Context, org identity.OrganizationID, change reservation.StateChange,
) (*inventory.Server, error) {
	key, _ := parseID(serverIDPrefix, string(change.ServerID))
	if err := c.mustCoverState(ctx, org, key, change); err != nil {
		return nil, err
	}
	var record serverRow
	var server inventory.Server
	err := c.send(ctx, step{
		sql:  setStateSQL,
		args: []any{org, key, change.State, orNull(change.Reason), change.By.Kind, orNull(change.By.ID), change.Force},
		read: oneRow(new(bool), func(row pgx.Rows) (err error) {
			if err = row.Scan(record.targets()...); err == nil {
				server, err = record.server()
			}
			return err
		}),
	})
	return &server, err
}

// mustCoverState demands of an editor a lease that covers the state of the locked server; automation needs none.
func (c *changing) mustCoverState(
	ctx context.Context, org identity.OrganizationID, key uuid.UUID, change reservation.StateChange,
) error {
	if change.Editor == "" {
		return nil
	}
	if err := c.send(ctx); err != nil { // what waits in the queue
		return err
	}
	server, err := oneServer(ctx, c.conn, serverSQL, org, key)
	if err != nil {
		return err
	}
	by := inventory.Change{Organization: string(org), ActorKind: string(change.By.Kind), ActorID: change.By.ID, Editor: change.Editor}
	return mustCover(ctx, c.conn, editorOf(by), &server, []string{"state"})
}

const bindDirectlySQL = `WITH made AS (
		INSERT INTO bindings (organization_id, id, server_id, service_id, since, created_by_kind, created_by, reason, server)
		SELECT s.organization_id, $3, s.id, $4, coalesce($5, clock_timestamp()), $6, $7, $8, freeze_server(s)
		FROM servers s WHERE s.organization_id = $1 AND s.id = $2
		RETURNING *
	) SELECT ` + bindingColumns + ` FROM made b`

// BindDirectly implements reservation.Tx.
func (c *changing) BindDirectly(
	ctx context.Context, org identity.OrganizationID, bind reservation.DirectBinding,
) (*reservation.Binding, error) {
	key, _ := parseID(serverIDPrefix, string(bind.ServerID))
	var since *time.Time
	if !bind.Since.IsZero() {
		since = &bind.Since
	}
	var made *reservation.Binding
	err := c.send(ctx, step{
		sql:  bindDirectlySQL,
		args: []any{org, key, newID(), bind.ServiceID, since, bind.By.Kind, orNull(bind.By.ID), orNull(bind.Reason)},
		read: readBinding(&made),
	})
	return made, err
}

const (
	lockServerOfBindingSQL = `SELECT FROM servers WHERE organization_id = $1
		AND id = (SELECT server_id FROM bindings WHERE organization_id = $1 AND id = $2) FOR UPDATE`
	lockBindingSQL = `SELECT FROM bindings WHERE organization_id = $1 AND id = $2 FOR UPDATE`
)

// LockBinding implements reservation.Tx.
func (c *changing) LockBinding(
	ctx context.Context, org identity.OrganizationID, id reservation.BindingID,
) (*reservation.Binding, error) {
	key, known := parseID(bindingIDPrefix, string(id))
	if !known {
		return nil, reservation.ErrNotFound
	}
	var b *reservation.Binding
	err := c.send(ctx,
		step{sql: lockServerOfBindingSQL, args: []any{org, key}},
		step{at: gate.ChangeAfterServer},
		step{sql: lockBindingSQL, args: []any{org, key}},
		step{sql: bindingSQL, args: []any{org, key}, read: readBinding(&b)},
		step{at: gate.ChangeAfterLock},
	)
	if err == nil && b == nil {
		err = reservation.ErrNotFound
	}
	return b, err
}

var endBindingSQL = `WITH moved AS (
		UPDATE bindings SET ended_at = clock_timestamp(), ended_by_kind = $3, ended_by = $4, end_reason = $5,
			delivery_failed = $6, version = version + 1
		WHERE organization_id = $1 AND id = $2 AND ended_at IS NULL
		RETURNING *
	), told AS (
		INSERT INTO events (organization_id, id, type, actor_kind, actor_id, reservation_id, binding_id, server_id, order_id, data)
		SELECT organization_id, uuid_v7(), '` + string(events.BindingEnded) + `', $3, $4, reservation_id, id, server_id, order_id,
			jsonb_build_object('service_id', service_id, 'reason', end_reason, 'delivery_failed', delivery_failed)
		FROM moved
	) SELECT ` + bindingColumns + ` FROM moved b`

// EndBinding implements reservation.Tx.
func (c *changing) EndBinding(ctx context.Context, b *reservation.Binding, end reservation.Ending) error {
	key, _ := parseID(bindingIDPrefix, string(b.ID))
	var ended *reservation.Binding
	err := c.send(ctx, step{
		sql:  endBindingSQL,
		args: []any{b.Organization, key, end.By.Kind, orNull(end.By.ID), orNull(end.Reason), end.DeliveryFailed},
		read: readBinding(&ended),
	})
	if err != nil || ended == nil {
		return err
	}
	_, err = c.SetServerState(ctx, b.Organization, reservation.StateChange{
		ServerID: b.Server.ID, State: end.StateAfter(), Reason: end.Reason, By: end.By,
	})
	*b = *ended
	return err
}
