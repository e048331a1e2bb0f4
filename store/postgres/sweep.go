package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// One statement picks and moves, so that a reservation renewed in between is never expired; what is locked is passed
// over. The rows picked are found again by their place in the table: by their key, which is a pair, the server would
// read the whole table and hold every row against every picked one. A row whose place changed while it was being locked
// is left to the next sweep. Each row is held against state and clock once more when it is moved.
func moveDueSQL(pick string) string {
	return `WITH moved AS (
		UPDATE reservations r SET state = 'expired', ended_at = clock_timestamp(), ended_by_kind = 'sweep', version = version + 1
		WHERE r.ctid = ANY (ARRAY(` + pick + `))
			AND r.state = 'held' AND r.expires_at <= clock_timestamp()
		RETURNING r.*
	) ` + tellMoved
}

var (
	// The time is a scalar subquery, which makes it a condition of the index reservations_due.
	sweepSQL = moveDueSQL(`SELECT due.ctid FROM reservations due
		WHERE due.state = 'held' AND due.expires_at <= (SELECT clock_timestamp())
		ORDER BY due.expires_at LIMIT $1 FOR UPDATE SKIP LOCKED`)
	sweepOneSQL = moveDueSQL(`SELECT ctid FROM reservations WHERE organization_id = $1 AND id = $2 FOR UPDATE SKIP LOCKED`)
)

// ExpireDue implements reservation.Store.
func (s *Reservations) ExpireDue(ctx context.Context, limit int) (int, error) {
	return s.sweep(ctx, sweepSQL, limit)
}

func (s *Reservations) sweep(ctx context.Context, sql string, args ...any) (moved int, err error) {
	err = inTx(ctx, s.pool, func(ctx context.Context, t *tx) error {
		return t.send(ctx, step{sql: sql, args: args, read: func(rows pgx.Rows) error {
			rows.Close()
			moved = int(rows.CommandTag().RowsAffected())
			return rows.Err()
		}}, step{at: gate.SweepAfterPick})
	})
	if err != nil {
		return 0, err
	}
	return moved, nil
}

// ExpireOne implements reservation.Store.
func (s *Reservations) ExpireOne(ctx context.Context, due reservation.Due) (bool, error) {
	id, known := parseID(reservationIDPrefix, string(due.ID))
	if !known {
		return false, reservation.ErrNotFound
	}
	moved, err := s.sweep(ctx, sweepOneSQL, due.Organization, id)
	return moved > 0, err
}

// DueAfter implements reservation.Store.
func (s *Reservations) DueAfter(ctx context.Context, cursor reservation.Due, limit int) ([]reservation.Due, error) {
	id, _ := parseID(reservationIDPrefix, string(cursor.ID)) // the zero cursor is before everything
	rows, err := s.pool.Query(ctx, `SELECT organization_id, id, expires_at FROM reservations
		WHERE state = 'held' AND expires_at <= (SELECT clock_timestamp()) AND (expires_at, organization_id, id) > ($1, $2, $3)
		ORDER BY expires_at, organization_id, id LIMIT $4`, cursor.ExpiresAt, cursor.Organization, id, limit)
	return collect(rows, err, func(row pgx.Row) (reservation.Due, error) {
		var due reservation.Due
		var id uuid.UUID
		err := row.Scan(&due.Organization, &id, &due.ExpiresAt)
		due.ID = reservation.ID(formatID(reservationIDPrefix, id))
		return due, err
	})
}
