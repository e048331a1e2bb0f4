package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
)

// horizonSQL is read before everything else: what is changed by a transaction that is not over by then is read the next
// time. A snapshot does not count the transaction that takes it among those that are open, but it may go on to change.
// The epoch changes when a standby takes over (timeline) and when another server answers, restored or restarted.
const horizonSQL = `SELECT pg_current_snapshot()::text, coalesce(pg_current_xact_id_if_assigned()::text, ''), clock_timestamp(),
	left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' || pg_postmaster_start_time()`

// notOver says that a row was changed by a transaction that was not over at the horizon.
const notOver = `(changed_by >= $2::text::xid8 OR changed_by = ANY ($3::text[]::xid8[]))`

// One statement tells of reservations and bindings together; two would see a free instant in the middle of a correct
// conversion. A converted reservation says nothing: its binding does.
const holdingsSinceSQL = `SELECT server_id, fence, false, version, state = 'held', expires_at
	FROM reservations WHERE organization_id = $1 AND ` + notOver + ` AND state <> 'converted'
	UNION ALL
	SELECT server_id, fence, true, version, ended_at IS NULL, NULL
	FROM bindings WHERE organization_id = $1 AND ` + notOver + `
	LIMIT $4`

const serversSinceSQL = `SELECT ` + serverColumns + ` FROM servers s WHERE s.organization_id = $1 AND ` + notOver + ` LIMIT $4`

// Pages go by the id of the server. What holds one at present is all that matters to who begins to look now; ended
// reservations and bindings do not.
const (
	holdingsPageSQL = `SELECT o.server_id, coalesce(b.fence, r.fence), o.binding_id IS NOT NULL, coalesce(b.version, r.version), true, r.expires_at
	FROM occupancy o
	LEFT JOIN reservations r ON r.organization_id = o.organization_id AND r.id = o.reservation_id
	LEFT JOIN bindings b ON b.organization_id = o.organization_id AND b.id = o.binding_id
	WHERE o.organization_id = $1 AND o.server_id >= $2 ORDER BY o.server_id LIMIT $3`

	serversPageSQL = `SELECT ` + serverColumns + ` FROM servers s WHERE s.organization_id = $1 AND s.id >= $2 ORDER BY s.id LIMIT $3`
)

// feedPage is how many servers a page has: far less than what a statement has time for.
const feedPage = 10_000

// maxNews is how many changed rows one read of what is new may bring: about half of what a statement has time for. More are
// changed by an import, or by somebody who tidies up the history of years, and to read everything goes by pages.
const maxNews = 200_000

// Everything implements allocation.Store. Each page is read by a statement of its own over whatever connection is free, so
// that no transaction stands open meanwhile. What is changed after the horizon was read may be in a page or not.
func (a *Allocations) Everything(
	ctx context.Context, org identity.OrganizationID, page func(allocation.News),
) (start allocation.News, err error) {
	if err := scanHorizon(a.pool.QueryRow(ctx, horizonSQL), &start); err != nil {
		return start, translate(err)
	}
	err = a.pages(ctx, serversPageSQL, org, func(rows pgx.Rows) (last inventory.ServerID, n int, err error) {
		servers, err := collectServers(rows)
		if n = len(servers); n > 0 {
			last = servers[n-1].ID
			page(allocation.News{Servers: servers})
		}
		return last, n, err
	})
	if err != nil {
		return start, err
	}
	return start, a.pages(ctx, holdingsPageSQL, org, func(rows pgx.Rows) (last inventory.ServerID, n int, err error) {
		holdings, err := pgx.CollectRows(rows, scanHolding)
		if n = len(holdings); n > 0 {
			last = holdings[n-1].Server
			page(allocation.News{Holdings: holdings})
		}
		return last, n, err
	})
}

// pages reads one page after the other until one is not full.
func (a *Allocations) pages(
	ctx context.Context, sql string, org identity.OrganizationID, read func(rows pgx.Rows) (last inventory.ServerID, n int, err error),
) error {
	for from := (uuid.UUID{}); ; {
		rows, err := a.pool.Query(ctx, sql, org, from, a.feedPage) //nolint:rowserrcheck // read asks
		if err != nil {
			return translate(err)
		}
		last, n, err := read(rows)
		if err != nil || n < a.feedPage {
			return translate(err)
		}
		if from, err = idAfter(last); err != nil || from == uuid.Nil {
			return err
		}
	}
}

// idAfter is the smallest that is larger; the nil one behind the last there can be.
func idAfter(server inventory.ServerID) (uuid.UUID, error) {
	id, ok := parseID(serverIDPrefix, string(server))
	if !ok {
		return id, fmt.Errorf("%q is no id of a server", server)
	}
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id, nil
}

// News implements allocation.Tx.
func (r *reserving) News(
	ctx context.Context, org identity.OrganizationID, since allocation.Horizon,
) (news allocation.News, err error) {
	err = r.send(ctx, newsSteps(&news, org, since, r.maxNews)...)
	return news, err
}

// News implements allocation.Store. Its statements see the same instant: who reads the records before and the holdings
// after the end of a sale would see a server that is neither sold nor out of order.
func (a *Allocations) News(
	ctx context.Context, org identity.OrganizationID, since allocation.Horizon,
) (news allocation.News, err error) {
	err = inTx(ctx, a.pool, func(_ context.Context, t *tx) error {
		t.begun = true
		t.queue = append([]step{{sql: `BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ`}}, newsSteps(&news, org, since, a.maxNews)...)
		return nil // all of it travels with the commit
	})
	return news, err
}

// newsSteps returns the steps that fill news: the horizon first, then the records, then who holds what, up to so many of
// each.
func newsSteps(news *allocation.News, org identity.OrganizationID, since allocation.Horizon, most int) []step {
	args := []any{org, strconv.FormatUint(since.Next, 10), strings.FieldsFunc(since.Open, func(r rune) bool { return r == ',' }), most + 1}
	return []step{
		{sql: horizonSQL, read: oneRow(new(bool), func(row pgx.Rows) error { return scanHorizon(row, news) })},
		{sql: serversSinceSQL, args: args, read: func(rows pgx.Rows) (err error) {
			news.Servers, err = collectServers(rows)
			news.TooMuch = len(news.Servers) > most
			return err
		}},
		{sql: holdingsSinceSQL, args: args, read: func(rows pgx.Rows) (err error) {
			news.Holdings, err = pgx.CollectRows(rows, scanHolding)
			news.TooMuch = news.TooMuch || len(news.Holdings) > most
			return err
		}},
	}
}

func scanHorizon(row pgx.Row, news *allocation.News) error {
	var snapshot, own string
	if err := row.Scan(&snapshot, &own, &news.At, &news.Epoch); err != nil {
		return err
	}
	news.At = news.At.UTC()
	var err error
	news.Horizon, err = horizonOf(snapshot, own)
	return err
}

// horizonOf reads a snapshot as PostgreSQL writes it, "oldest:next:open,open", and the number of the transaction that took
// it, if it has one.
func horizonOf(snapshot, own string) (h allocation.Horizon, err error) {
	parts := strings.Split(snapshot, ":")
	if len(parts) != 3 {
		return h, fmt.Errorf("%q is no snapshot", snapshot)
	}
	if h.Next, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return h, err
	}
	h.Open = parts[2]
	if own == "" {
		return h, nil
	}
	number, err := strconv.ParseUint(own, 10, 64)
	if err != nil || number >= h.Next {
		return h, err
	}
	h.Open = strings.TrimPrefix(h.Open+","+own, ",")
	return h, nil
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
