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

// The steps of one candidate travel together, and a row that was passed over is no error that would stop the ones
// behind it. So the lock leaves a mark that ends with the savepoint, and what follows does nothing without it. The
// mark is made outside the locking query: inside, it would be made before the lock is known to be had.
const lockCandidateSQL = `SELECT set_config('allocator.locked_server', $2::uuid::text, true)
	FROM (SELECT FROM servers WHERE organization_id = $1 AND id = $2 FOR UPDATE SKIP LOCKED) locked`

const isLocked = `coalesce(current_setting('allocator.locked_server', true) = $2::uuid::text, false)`

// expireDeadHoldSQL moves a dead hold of a server that this transaction has locked out of the way, unless somebody has
// that row locked.
const expireDeadHoldSQL = `WITH dead AS (
		SELECT id FROM reservations
		WHERE organization_id = $1 AND server_id = $2 AND state = 'held' AND expires_at <= clock_timestamp()
		FOR UPDATE SKIP LOCKED
	), moved AS (
		UPDATE reservations r SET state = 'expired', ended_at = clock_timestamp(), ended_by_kind = 'allocator', version = version + 1
		FROM dead
		WHERE r.organization_id = $1 AND r.id = dead.id AND ` + isHeld + ` AND r.expires_at <= clock_timestamp()
		RETURNING r.*
	) ` + tellMoved

// tellMoved writes the event of reservations that a CTE called moved has expired.
const tellMoved = `INSERT INTO events (organization_id, id, type, actor_kind, reservation_id, server_id, order_id, decision_id)
	SELECT organization_id, uuid_v7(), 'reservation.expired', ended_by_kind, id, server_id, order_id, decision_id FROM moved`

// newReservationColumns are those that a statement gives to a new reservation; the others have defaults.
const newReservationColumns = `organization_id, id, server_id, order_id, order_line, unit, customer_ref, created_at,
	created_by_kind, created_by, expires_at, max_expires_at, idempotency_key, fingerprint, token_key, requirements,
	reason, server, decision_id`

// judgeAgainSQL is a new statement under the lock and so has a new snapshot: it judges the server once more, and
// inserts only if nothing speaks against it and no held row stands in the way, dead or alive.
var judgeAgainSQL = `WITH verdict AS MATERIALIZED (
		SELECT ` + isLocked + ` AS locked, coalesce(o.held, false) AS held,
			` + failsSQL + ` | ` + unknownSQL + ` AS against,
			freeze_server(s) AS frozen, clock.at AS at,
			make_interval(secs => (SELECT hold_seconds FROM organizations WHERE id = $1)) AS hold
		FROM servers s
		CROSS JOIN jsonb_to_record($3::jsonb) AS q (` + questionRecord + `)
		CROSS JOIN LATERAL (
			SELECT EXISTS (SELECT FROM occupancy WHERE organization_id = $1 AND server_id = $2 AND reservation_id IS NOT NULL) AS held,
			       EXISTS (SELECT FROM occupancy WHERE organization_id = $1 AND server_id = $2 AND binding_id IS NOT NULL) AS bound) o
		CROSS JOIN (SELECT clock_timestamp() AS at) clock
		WHERE s.organization_id = $1 AND s.id = $2
	), made AS (
		INSERT INTO reservations (` + newReservationColumns + `)
		SELECT $1, $4, $2, $5, $6, $7, $8, at, $9, $10, at + hold, at + greatest(hold, interval '60 minutes'),
			$11, $12, $13, $14, $15, frozen, $16
		FROM verdict WHERE locked AND against = 0
		RETURNING *
	)
	SELECT ` + reservationColumns + `, v.locked, v.held, r.id IS NOT NULL
	FROM verdict v LEFT JOIN made r ON true ` + noBinding

// Try implements allocation.Tx.
func (r *reserving) Try(ctx context.Context, try allocation.Attempt) (allocation.TryResult, error) {
	server, known := parseID(serverIDPrefix, string(try.Server))
	if !known {
		return allocation.TryResult{Outcome: allocation.TryStale}, nil
	}
	reason, badReason := json.Marshal(try.Choice)
	args, err := judgeArgs(try, server, newID(), reason)
	if err := errors.Join(err, badReason); err != nil {
		return allocation.TryResult{}, err
	}
	var answer judged
	r.queue = append(r.queue, step{at: gate.ReserveAfterList}, step{sql: `SAVEPOINT candidate`})
	err = r.send(ctx,
		step{sql: lockCandidateSQL, args: []any{try.Organization, server}},
		step{at: gate.ReserveAfterLock},
		step{sql: expireDeadHoldSQL, args: []any{try.Organization, server}},
		step{sql: judgeAgainSQL, args: args, read: oneRow(&answer.known, answer.scan)},
		step{at: gate.ReserveAfterInsert},
	)
	outcome, failure := outcomeOf(answer, err)
	switch {
	case failure != nil:
		return allocation.TryResult{}, failure
	case err != nil:
		// In a failed transaction nothing new can be prepared, so this travels alone, as plain text.
		_, err = r.conn.Exec(ctx, letGo)
		return allocation.TryResult{Outcome: outcome}, err
	case outcome == allocation.TryReserved:
		r.later(`RELEASE SAVEPOINT candidate`)
		return allocation.TryResult{Outcome: outcome, Reservation: answer.made}, nil
	}
	r.later(`ROLLBACK TO SAVEPOINT candidate`)
	r.later(`RELEASE SAVEPOINT candidate`)
	return allocation.TryResult{Outcome: outcome}, nil
}

// letGo ends a candidate's savepoint and with it the lock on its server.
const letGo = `ROLLBACK TO SAVEPOINT candidate; RELEASE SAVEPOINT candidate`

// outcomeOf says what became of a candidate. Errors that mean "somebody was faster" are answers here.
func outcomeOf(answer judged, err error) (allocation.TryOutcome, error) {
	if err != nil {
		switch clashOf(err) {
		case clashServer:
			return allocation.TryLost, nil
		case clashKey:
			return allocation.TryKeyTaken, nil
		case clashLine:
			return allocation.TryLineTaken, nil
		case clashLocked:
			return allocation.TrySkipped, nil
		default:
			return "", err
		}
	}
	switch {
	case answer.made != nil:
		return allocation.TryReserved, nil
	case !answer.known:
		return allocation.TryStale, nil
	case !answer.locked, answer.held:
		return allocation.TrySkipped, nil
	default:
		return allocation.TryStale, nil
	}
}

// judged is the answer of judgeAgainSQL.
type judged struct {
	known, locked, held bool
	made                *reservation.Reservation
}

// scan reads the verdict first, since without a reservation the columns before it are all NULL.
func (j *judged) scan(row pgx.Rows) error {
	var inserted bool
	columns := make([]any, len(row.FieldDescriptions())-3, len(row.FieldDescriptions())) // nil: not read
	if err := row.Scan(append(columns, &j.locked, &j.held, &inserted)...); err != nil || !inserted {
		return err
	}
	made, err := scanReservation(row, nil, nil, nil)
	j.made = made
	return err
}

func judgeArgs(try allocation.Attempt, server, made uuid.UUID, reason []byte) ([]any, error) {
	decision, known := parseID(decisionIDPrefix, string(try.Decision))
	if !known {
		return nil, errors.New("a reservation was given a decision's id that no store made")
	}
	return []any{
		try.Organization, server, []byte(try.Wanted.Arguments), made,
		try.Order.OrderID, try.Order.Line, try.Order.Unit, orNull(try.CustomerRef), try.By.Kind, orNull(try.By.ID),
		try.Key, try.Fingerprint, try.TokenKey, []byte(try.Wanted.Canonical), reason, decision,
	}, nil
}

// NewDecisionID implements allocation.Tx.
func (r *reserving) NewDecisionID() allocation.DecisionID {
	return allocation.DecisionID(formatID(decisionIDPrefix, newID()))
}

const expireHoldSQL = `WITH moved AS (
		UPDATE reservations r SET state = 'expired', ended_at = clock_timestamp(), ended_by_kind = 'allocator', version = version + 1
		WHERE organization_id = $1 AND id = $2 AND ` + isHeld + ` AND expires_at <= clock_timestamp()
		RETURNING *
	) ` + tellMoved

// ExpireHold implements allocation.Tx.
func (r *reserving) ExpireHold(ctx context.Context, dead *reservation.Reservation) (bool, error) {
	id, _ := parseID(reservationIDPrefix, string(dead.ID))
	var moved bool
	err := r.send(ctx, step{sql: expireHoldSQL, args: []any{dead.Organization, id}, read: func(rows pgx.Rows) error {
		rows.Close()
		moved = rows.CommandTag().RowsAffected() > 0
		return rows.Err()
	}})
	return moved, err
}
