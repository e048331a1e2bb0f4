package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/lease"
)

// UnderEdit tells which servers are under edit. It implements allocation.EditFeed.
type UnderEdit struct{ pool *pgxpool.Pool }

var _ allocation.EditFeed = (*UnderEdit)(nil)

// NewUnderEdit makes the feed.
func NewUnderEdit(pool *pgxpool.Pool) *UnderEdit { return &UnderEdit{pool: pool} }

// What an organization can have under edit at once; more are not noted.
const maxUnderEdit = 2000

const (
	liveKeysSQL = `SELECT resource, part FROM leases WHERE organization_id = $1 AND expires_at > clock_timestamp()
		AND (resource LIKE 'server:%' OR resource LIKE 'rack:%' OR resource LIKE 'chassis:%')
		ORDER BY resource, part LIMIT 2000`

	// Each of the three is found by an index; leases are few, and servers may be a million.
	serversAtSQL = `SELECT id, coalesce(rack, ''), coalesce(position, ''), coalesce(attributes ->> 'chassis', ''), coalesce(attributes ->> 'node', '')
		FROM servers WHERE organization_id = $1
			AND (id = ANY ($2) OR rack = ANY ($3) OR attributes ? 'chassis' AND attributes ->> 'chassis' = ANY ($4))
		ORDER BY id LIMIT $5`
)

// ServersUnderEdit implements allocation.EditFeed: it asks for the leases first, and without any for nothing else.
func (u *UnderEdit) ServersUnderEdit(ctx context.Context, org identity.OrganizationID) ([]inventory.ServerID, error) {
	rows, err := u.pool.Query(ctx, liveKeysSQL, org)
	keys, err := collect(rows, err, func(row pgx.Row) (key lease.Key, err error) {
		return key, row.Scan(&key.Resource, &key.Part)
	})
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	var ids []uuid.UUID
	var racks, chassis []string
	for _, key := range keys {
		kind, name, _ := strings.Cut(key.Resource, ":")
		switch id, isServer := parseID(serverIDPrefix, name); {
		case kind == "rack":
			racks = append(racks, name)
		case kind == "chassis":
			chassis = append(chassis, name)
		case isServer:
			ids = append(ids, id)
		}
	}
	rows, err = u.pool.Query(ctx, serversAtSQL, org, ids, racks, chassis, maxUnderEdit)
	standing, err := collect(rows, err, scanStanding)
	return leased(standing, keys), err
}

// scanStanding reads of a server what says where it stands.
func scanStanding(row pgx.Row) (s inventory.Server, err error) {
	var id uuid.UUID
	var in, as string
	err = row.Scan(&id, &s.Rack, &s.Position, &in, &as)
	s.ID, s.Attributes = inventory.ServerID(formatID(serverIDPrefix, id)), map[string]string{chassisAttribute: in, nodeAttribute: as}
	return s, err
}

// leased are the servers of which the record or the place overlaps a leased key, by the rules that writes go by.
func leased(servers []inventory.Server, keys []lease.Key) (ids []inventory.ServerID) {
	of := map[string][]lease.Key{}
	for _, key := range keys {
		of[key.Resource] = append(of[key.Resource], key)
	}
	for i := range servers {
		for _, where := range append(places(&servers[i]), recordKey(servers[i].ID, "")) {
			if slices.ContainsFunc(of[where.Resource], where.Overlaps) {
				ids = append(ids, servers[i].ID)
				break
			}
		}
	}
	return ids
}
