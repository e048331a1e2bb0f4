package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/identity"
	"allocator/reservation"
)

// Reservations keeps reservations and bindings. It implements reservation.Store.
type Reservations struct{ pool *pgxpool.Pool }

var _ reservation.Store = (*Reservations)(nil)

// NewReservations makes the store.
func NewReservations(pool *pgxpool.Pool) *Reservations { return &Reservations{pool: pool} }

// InTx implements reservation.Store.
func (s *Reservations) InTx(ctx context.Context, fn func(ctx context.Context, tx reservation.Tx) error) error {
	return inTx(ctx, s.pool, func(ctx context.Context, t *tx) error {
		return fn(ctx, &changing{tx: t})
	})
}

// Reservation implements reservation.Store.
func (s *Reservations) Reservation(
	ctx context.Context, org identity.OrganizationID, id reservation.ID,
) (*reservation.Reservation, error) {
	key, known := parseID(reservationIDPrefix, string(id))
	if !known {
		return nil, reservation.ErrNotFound
	}
	r, err := scanReservation(s.pool.QueryRow(ctx, reservationSQL, org, key))
	if err != nil {
		return nil, notFound(err)
	}
	return r, nil
}

const reservationSQL = `SELECT ` + reservationColumns + fromReservations + ` WHERE r.organization_id = $1 AND r.id = $2`

// Reservations implements reservation.Store.
func (s *Reservations) Reservations(
	ctx context.Context, org identity.OrganizationID, filter reservation.Filter,
) ([]*reservation.Reservation, error) {
	w := whereOrganization("r", org)
	oneOf(w, "r.order_id", filter.OrderIDs)
	oneOf(w, "CASE WHEN r.state = 'held' AND r.expires_at <= clock_timestamp() THEN 'expired' ELSE r.state END", filter.States)
	oneOfIDs(w, "r.server_id", serverIDPrefix, filter.ServerIDs)
	if !filter.ExpiresBefore.IsZero() {
		w.and("r.expires_at < %s", filter.ExpiresBefore)
	}
	w.olderThan("r.id", reservationIDPrefix, string(filter.After))
	rows, err := s.pool.Query(ctx, `SELECT `+reservationColumns+fromReservations+w.newestFirst("r.id", filter.Limit), w.args...)
	return collect(rows, err, func(row pgx.Row) (*reservation.Reservation, error) { return scanReservation(row) })
}

// Binding implements reservation.Store.
func (s *Reservations) Binding(
	ctx context.Context, org identity.OrganizationID, id reservation.BindingID,
) (*reservation.Binding, error) {
	key, known := parseID(bindingIDPrefix, string(id))
	if !known {
		return nil, reservation.ErrNotFound
	}
	b, err := scanBinding(s.pool.QueryRow(ctx, bindingSQL, org, key))
	if err != nil {
		return nil, notFound(err)
	}
	return b, nil
}

const bindingSQL = `SELECT ` + bindingColumns + ` FROM bindings b WHERE b.organization_id = $1 AND b.id = $2`

// Bindings implements reservation.Store.
func (s *Reservations) Bindings(
	ctx context.Context, org identity.OrganizationID, filter reservation.BindingFilter,
) ([]*reservation.Binding, error) {
	w := whereOrganization("b", org)
	oneOfIDs(w, "b.server_id", serverIDPrefix, filter.ServerIDs)
	oneOf(w, "b.service_id", filter.ServiceIDs)
	oneOf(w, "b.order_id", filter.OrderIDs)
	if filter.Active != nil {
		w.and("(b.ended_at IS NULL) = %s", *filter.Active)
	}
	w.olderThan("b.id", bindingIDPrefix, string(filter.After))
	rows, err := s.pool.Query(ctx, `SELECT `+bindingColumns+` FROM bindings b`+w.newestFirst("b.id", filter.Limit), w.args...)
	return collect(rows, err, scanBinding)
}
