package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
)

const decisionColumns = `d.organization_id, d.id, d.created_at, d.order_id, d.order_line, d.unit, d.outcome,
	coalesce(d.cause, ''), d.reservation_id, d.by_kind, d.by_id, d.body, d.sampled`

func scanDecision(row pgx.Row) (*allocation.Decision, error) {
	var (
		d        allocation.Decision
		id       uuid.UUID
		about    *uuid.UUID
		by, byID *string
		body     []byte
	)
	err := row.Scan(&d.Organization, &id, &d.CreatedAt, &d.Order.OrderID, &d.Order.Line, &d.Order.Unit, &d.Outcome,
		&d.Cause, &about, &by, &byID, &body, &d.Pack.Sampled)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, err
	}
	if d.Choice != nil && d.Choice.Text == "" {
		d.Choice.Text = d.Text
	}
	d.ID, d.CreatedAt, d.By = allocation.DecisionID(formatID(decisionIDPrefix, id)), d.CreatedAt.UTC(), *actorOf(by, byID)
	if about != nil {
		d.Reservation = reservation.ID(formatID(reservationIDPrefix, *about))
	}
	return &d, nil
}

const decisionSQL = `SELECT ` + decisionColumns + ` FROM decisions d WHERE d.organization_id = $1 AND d.id = $2`

// Decision implements allocation.Store.
func (a *Allocations) Decision(
	ctx context.Context, org identity.OrganizationID, id allocation.DecisionID,
) (*allocation.Decision, error) {
	key, known := parseID(decisionIDPrefix, string(id))
	if !known {
		return nil, reservation.ErrNotFound
	}
	d, err := scanDecision(a.pool.QueryRow(ctx, decisionSQL, org, key))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, a.whyNoDecision(ctx, key)
	}
	return d, translate(err)
}

// whyNoDecision tells an id that is past its retention from one that never was. The time stands in the UUIDv7, so the
// answer depends on the id alone and tells nobody anything about another organization.
func (a *Allocations) whyNoDecision(ctx context.Context, id uuid.UUID) error {
	var past bool
	err := a.pool.QueryRow(ctx, `SELECT $1::uuid < uuid_v7_floor(clock_timestamp() - decision_retention())`, id).Scan(&past)
	switch {
	case err != nil:
		return translate(err)
	case past:
		return allocation.ErrDecisionGone
	default:
		return reservation.ErrNotFound
	}
}

// Decisions implements allocation.Store.
func (a *Allocations) Decisions(
	ctx context.Context, org identity.OrganizationID, filter allocation.DecisionFilter,
) ([]*allocation.Decision, error) {
	w := whereOrganization("d", org)
	oneOf(w, "d.order_id", filter.OrderIDs)
	oneOf(w, "d.outcome", filter.Outcomes)
	w.olderThan("d.id", decisionIDPrefix, string(filter.After))
	rows, err := a.pool.Query(ctx, `SELECT `+decisionColumns+` FROM decisions d`+w.newestFirst("d.id", filter.Limit), w.args...)
	return collect(rows, err, scanDecision)
}

// FrozenPack implements allocation.Store.
func (a *Allocations) FrozenPack(
	ctx context.Context, org identity.OrganizationID, id allocation.DecisionID,
) (allocation.FrozenPack, error) {
	var pack allocation.FrozenPack
	key, known := parseID(decisionIDPrefix, string(id))
	if !known {
		return pack, reservation.ErrNotFound
	}
	var statuses []byte
	const newest = `(SELECT body FROM decision_lists l WHERE l.organization_id = d.organization_id AND l.hash = `
	err := a.pool.QueryRow(ctx, `SELECT d.sampled, d.statuses, d.roster_hash, `+newest+`d.roster_hash LIMIT 1),
			d.reasons_hash, `+newest+`d.reasons_hash LIMIT 1),
			d.base_hash, `+newest+`d.base_hash LIMIT 1)
		FROM decisions d WHERE d.organization_id = $1 AND d.id = $2`, org, key).
		Scan(&pack.Sampled, &statuses, &pack.Roster.Hash, &pack.Roster.Body, &pack.Reasons.Hash, &pack.Reasons.Body,
			&pack.Base.Hash, &pack.Base.Body)
	if err != nil {
		return pack, notFound(err)
	}
	pack.Statuses, err = unpackNumbers(statuses)
	return pack, err
}
