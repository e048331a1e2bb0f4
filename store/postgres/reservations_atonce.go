package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// lockAtOnceSQL tries the locks of key and order line and, with both in hand, the server. In another isolation level
// than READ COMMITTED the next statement would not see what was committed before the lock was had, so there it locks
// nothing.
const lockAtOnceSQL = `SELECT FROM servers
	WHERE organization_id = $1 AND id = $6 AND current_setting('transaction_isolation') = 'read committed'
		AND (SELECT CASE WHEN ` + tryKeySQL + ` THEN ` + tryLineSQL + ` ELSE false END)
	FOR UPDATE SKIP LOCKED`

// lockedAtOnce is true of a server that this transaction has locked, which the row itself tells: nobody else can put this
// transaction's number there. (Inside a savepoint it would be another number; what the walk does is in lockCandidateSQL.)
const lockedAtOnce = `s.xmax = xid(pg_current_xact_id())`

// reserveAtOnceSQL is a new statement behind the locks. It asks what Open asks and judges as Try does, and writes
// everything or nothing. The server comes back as its columns: reading them is cheaper than writing and reading again
// the JSON that is frozen.
func reserveAtOnceSQL(asked allocation.RuleSet) string {
	return `WITH fit (frozen, at, hold, ` + columnsOfServer + `) AS MATERIALIZED (
		SELECT freeze_server(s) AS frozen, clock_timestamp() AS at, make_interval(secs => policy.hold_seconds) AS hold,
			` + serverColumns + `
		FROM servers s
		JOIN organizations policy ON policy.id = $1 AND NOT policy.closing` + passesSQL(asked) + `
			AND s.organization_id = $1 AND s.id = $2 AND ` + lockedAtOnce + `
			AND NOT EXISTS (SELECT FROM occupancy WHERE organization_id = $1 AND server_id = $2)
			AND NOT EXISTS (SELECT FROM reservations WHERE organization_id = $1 AND idempotency_key = $11)
			AND NOT EXISTS (SELECT FROM occupancy WHERE organization_id = $1 AND order_id = $5 AND order_line = $6 AND unit = $7)
			AND ($8::text IS NULL OR policy.hold_limit > ` + openHoldsSQL("$8") + `)
	), made AS (
		INSERT INTO reservations (` + newReservationColumns + `)
		SELECT $1, $4, $2, $5, $6, $7, $8, at, $9, $10, at + hold, at + greatest(hold, interval '60 minutes'),
			$11, $12, $13, $14, $15, frozen, $16
		FROM fit
		RETURNING fence, created_at, expires_at, max_expires_at
	), decided AS (
		INSERT INTO decisions (` + decisionColumnsWritten + `)
		SELECT $1, $16, $5, $6, $7, $17, NULL, $4, $2, fence, expires_at, $9, $10, $18, $19, $20, $21, $22, $23 FROM made
	) SELECT fence, created_at, expires_at, max_expires_at, ` + columnsOfServer + ` FROM made, fit`
}

// ReserveAtOnce implements allocation.Store.
func (a *Allocations) ReserveAtOnce(
	ctx context.Context, try allocation.Attempt, d *allocation.Decision,
) (*reservation.Reservation, error) {
	server, known := parseID(serverIDPrefix, string(try.Server))
	if !known {
		return nil, nil
	}
	decision, made := newID(), newID()
	try.Decision = allocation.DecisionID(formatID(decisionIDPrefix, decision))
	d.ID, d.Reservation = try.Decision, reservation.ID(formatID(reservationIDPrefix, made))
	reason, badReason := json.Marshal(try.Choice)
	args, err := atOnceArgs(try, server, made, reason, d)
	if err := errors.Join(err, badReason); err != nil {
		return nil, err
	}
	var r *reservation.Reservation
	err = a.InTx(ctx, func(_ context.Context, tx allocation.Tx) error {
		r = nil
		t := tx.(*reserving) //nolint:forcetypeassert // InTx makes nothing else
		t.queue = append(t.queue, step{at: gate.ReserveAfterList},
			step{sql: lockAtOnceSQL, args: []any{try.Organization, try.Key, try.Order.OrderID, try.Order.Line, try.Order.Unit, server}},
			step{at: gate.ReserveAfterLock})
		if try.Lapsed {
			t.later(expireDeadHoldSQL, try.Organization, server)
		}
		t.queue = append(t.queue,
			step{
				sql: a.statements.reserveAtOnce(try.Wanted.Rules), args: args,
				read: oneRow(new(bool), func(row pgx.Rows) (err error) {
					r, err = scanMade(row, d.Reservation, &try, reason)
					return err
				}),
			},
			step{at: gate.ReserveAfterInsert})
		t.writeLists(d)
		return nil
	})
	if refused(err) {
		return nil, nil
	}
	return r, err
}

// refused tells that the transaction ended because somebody was faster.
func refused(err error) bool {
	switch clashOf(err) {
	case clashServer, clashKey, clashLine, clashLocked:
		return true
	default:
		return false
	}
}

func atOnceArgs(try allocation.Attempt, server, made uuid.UUID, reason []byte, d *allocation.Decision) ([]any, error) {
	args, badArgs := judgeArgs(try, server, made, reason)
	body, badBody := decisionBody(d)
	if err := errors.Join(badArgs, badBody); err != nil {
		return nil, err
	}
	return append(args, d.Outcome, body, d.Pack.Roster.Hash, d.Pack.Reasons.Hash, d.Pack.Base.Hash,
		packNumbers(d.Pack.Statuses), d.Pack.Sampled), nil
}

// scanMade puts a new reservation together from what was asked and what the database added.
func scanMade(
	row pgx.Row, made reservation.ID, try *allocation.Attempt, reason json.RawMessage,
) (*reservation.Reservation, error) {
	r := &reservation.Reservation{
		ID: made, Organization: try.Organization, Order: try.Order, CustomerRef: try.CustomerRef, State: reservation.StateHeld,
		Generation: 1, Version: 1, IdempotencyKey: try.Key, Fingerprint: try.Fingerprint, TokenKey: try.TokenKey,
		Requirements: try.Wanted.Canonical, Reason: reason, DecisionID: string(try.Decision),
	}
	var server serverRow
	targets := []any{&r.Fence, &r.CreatedAt, &r.ExpiresAt, &r.MaxExpiresAt}
	if err := row.Scan(append(targets, server.targets()...)...); err != nil {
		return nil, err
	}
	r.CreatedAt, r.ExpiresAt, r.MaxExpiresAt = r.CreatedAt.UTC(), r.ExpiresAt.UTC(), r.MaxExpiresAt.UTC()
	var err error
	r.Server, err = server.server()
	return r, err
}
