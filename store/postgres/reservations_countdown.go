package postgres

import (
	"context"
	"time"

	"allocator/identity"
	"allocator/reservation"
)

// Countdown tells how long a reservation will be held, and its state, at one instant of the database's clock.
// reservation.ErrNotFound for an id that the organization does not have.
func (s *Reservations) Countdown(
	ctx context.Context, org identity.OrganizationID, id reservation.ID,
) (reservation.Countdown, error) {
	key, known := parseID(reservationIDPrefix, string(id))
	if !known {
		return reservation.Countdown{}, reservation.ErrNotFound
	}
	var now reservation.Countdown
	var left float64
	err := s.pool.QueryRow(ctx, countdownSQL, org, key).Scan(&now.State, &left)
	if err != nil {
		return reservation.Countdown{}, notFound(err)
	}
	if now.State.Holds() {
		now.Left = time.Duration(left * float64(time.Second))
	}
	return now, nil
}

const countdownSQL = `
	SELECT CASE WHEN state = 'held' AND expires_at <= clock.at THEN 'expired' ELSE state END,
		extract(epoch FROM expires_at - clock.at)::float8
	FROM (SELECT clock_timestamp() AS at) clock, reservations
	WHERE organization_id = $1 AND id = $2`
