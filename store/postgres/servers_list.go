package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"allocator/inventory"
)

// listServers goes along the primary key, so that a page costs what it shows and no row that exists throughout is seen
// twice or never.
const listServers = `
	SELECT ` + serverColumns + `
	FROM servers s
	WHERE s.organization_id = $1 AND s.id > $2
		AND (cardinality($3::text[]) = 0 OR s.site = ANY ($3))
		AND (cardinality($4::text[]) = 0 OR s.rack = ANY ($4))
		AND (cardinality($5::text[]) = 0 OR s.state = ANY ($5))
		AND (cardinality($6::text[]) = 0 OR s.model = ANY ($6))
		AND (cardinality($7::text[]) = 0 OR lower(s.serial) IN (SELECT lower(serial) FROM unnest($7::text[]) AS serial))
		AND (cardinality($8::text[]) = 0 OR s.name = ANY ($8))
		AND ($9 = '' OR strpos(lower(s.name), lower($9)) > 0 OR strpos(lower(s.serial), lower($9)) > 0
			OR strpos(lower(s.model), lower($9)) > 0 OR strpos(lower(s.external_id), lower($9)) > 0)
	ORDER BY s.id
	LIMIT nullif($10::bigint, 0)`

// Servers implements inventory.Store.
func (s *Servers) Servers(ctx context.Context, org string, f inventory.Filter) ([]inventory.Server, error) {
	var after uuid.UUID // before every id
	if f.After != "" {
		id, ok := parseID(serverIDPrefix, string(f.After))
		if !ok {
			return nil, inventory.ErrNotFound
		}
		after = id
	}
	rows, err := s.pool.Query(ctx, listServers, org, after, textsOf(f.Sites), textsOf(f.Racks),
		textsOf(f.States), textsOf(f.Models), textsOf(f.Serials), textsOf(f.Names), f.Query, f.Limit)
	if err != nil {
		return nil, wrapped("list servers", translate(err))
	}
	servers, err := collectServers(rows)
	return servers, wrapped("list servers", translate(err))
}

func collectServers(rows pgx.Rows) ([]inventory.Server, error) {
	var row serverRow
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (inventory.Server, error) {
		if err := r.Scan(row.targets()...); err != nil {
			return inventory.Server{}, err
		}
		return row.server()
	})
}

// textsOf is never nil, which would be NULL.
func textsOf[T ~string](list []T) []string {
	texts := make([]string, len(list))
	for i, value := range list {
		texts[i] = string(value)
	}
	return texts
}
