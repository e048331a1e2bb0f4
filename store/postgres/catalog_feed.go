package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
)

// horizonSQL is read before everything else: what is changed by a transaction that is not over by then is read again
// the next time.
// The epoch changes when a standby takes over (timeline) and when another server answers, restored or restarted.
const horizonSQL = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text, clock_timestamp(),
	left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' || pg_postmaster_start_time()`

// One statement tells of reservations and bindings together; two would see a free instant in the middle of a correct
// conversion. A converted reservation says nothing: its binding does.
const holdingsSinceSQL = `SELECT server_id, fence, false, version, state = 'held', expires_at
	FROM reservations WHERE organization_id = $1 AND changed_by >= $2::text::xid8 AND state <> 'converted'
	UNION ALL
	SELECT server_id, fence, true, version, ended_at IS NULL, NULL
	FROM bindings WHERE organization_id = $1 AND changed_by >= $2::text::xid8`

const serversSinceSQL = `SELECT ` + serverColumns + ` FROM servers s WHERE s.organization_id = $1 AND s.changed_by >= $2::text::xid8`

// What holds a server at present; ended reservations and bindings do not matter to who begins to look now.
const holdingsNowSQL = `SELECT o.server_id, coalesce(b.fence, r.fence), o.binding_id IS NOT NULL, coalesce(b.version, r.version), true, r.expires_at
	FROM occupancy o
	LEFT JOIN reservations r ON r.organization_id = o.organization_id AND r.id = o.reservation_id
	LEFT JOIN bindings b ON b.organization_id = o.organization_id AND b.id = o.binding_id
	WHERE o.organization_id = $1`

const serversNowSQL = `SELECT ` + serverColumns + ` FROM servers s WHERE s.organization_id = $1 ORDER BY s.id`

// News implements allocation.Tx.
func (r *reserving) News(
	ctx context.Context, org identity.OrganizationID, since allocation.Horizon,
) (news allocation.News, err error) {
	if since == 0 {
		err = r.send(ctx, newsSteps(&news, serversNowSQL, holdingsNowSQL, org)...)
	} else {
		err = r.send(ctx, newsSteps(&news, serversSinceSQL, holdingsSinceSQL, org, strconv.FormatUint(uint64(since), 10))...)
	}
	return news, err
}

// News implements allocation.Store. Its statements see the same instant: who reads the records before and the holdings
// after the end of a sale would see a server that is neither sold nor out of order.
func (a *Allocations) News(
	ctx context.Context, org identity.OrganizationID, since allocation.Horizon,
) (news allocation.News, err error) {
	servers, holdings, args := serversNowSQL, holdingsNowSQL, []any{org}
	if since != 0 {
		servers, holdings, args = serversSinceSQL, holdingsSinceSQL, append(args, strconv.FormatUint(uint64(since), 10))
	}
	err = inTx(ctx, a.pool, func(_ context.Context, t *tx) error {
		t.begun = true
		t.queue = append([]step{{sql: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`}}, newsSteps(&news, servers, holdings, args...)...)
		return nil // all of it travels with the commit
	})
	return news, err
}

// newsSteps returns the steps that fill news: the horizon first, then the records, then who holds what.
func newsSteps(news *allocation.News, serversSQL, holdingsSQL string, args ...any) []step {
	return []step{
		{sql: horizonSQL, read: oneRow(new(bool), func(row pgx.Rows) error { return scanHorizon(row, news) })},
		{sql: serversSQL, args: args, read: func(rows pgx.Rows) (err error) {
			news.Servers, err = collectServers(rows)
			return err
		}},
		{sql: holdingsSQL, args: args, read: func(rows pgx.Rows) (err error) {
			news.Holdings, err = pgx.CollectRows(rows, scanHolding)
			return err
		}},
	}
}

func scanHorizon(row pgx.Row, news *allocation.News) error {
	var xmin string
	if err := row.Scan(&xmin, &news.At, &news.Epoch); err != nil {
		return err
	}
	horizon, err := strconv.ParseUint(xmin, 10, 64)
	news.Horizon, news.At = allocation.Horizon(horizon), news.At.UTC()
	return err
}

func scanHolding(row pgx.CollectableRow) (allocation.Holding, error) {
	var h allocation.Holding
	var server uuid.UUID
	var until *time.Time
	err := row.Scan(&server, &h.Fence, &h.Sold, &h.Version, &h.Taken, &until)
	h.Server = inventory.ServerID(formatID(serverIDPrefix, server))
	if until != nil {
		h.Until = *until
	}
	return h, err
}
