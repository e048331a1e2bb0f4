package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// capacitySQL counts as the rule says, and knows nothing of a catalog.
const capacitySQL = `SELECT site, model, count(*), count(*) FILTER (WHERE state = 'ready' AND NOT held AND NOT bound),
		count(*) FILTER (WHERE held), count(*) FILTER (WHERE bound), count(*) FILTER (WHERE state <> 'ready' AND NOT held AND NOT bound)
	FROM (SELECT s.site, coalesce(s.model, '') COLLATE "C" AS model, s.state,
			EXISTS (SELECT FROM reservations r WHERE (r.organization_id, r.server_id) = (s.organization_id, s.id)
				AND r.state = 'held' AND r.expires_at > clock_timestamp()) AS held,
			EXISTS (SELECT FROM bindings b WHERE (b.organization_id, b.server_id) = (s.organization_id, s.id) AND b.ended_at IS NULL) AS bound
		FROM servers s WHERE s.organization_id = $1) judged
	GROUP BY site, model ORDER BY site COLLATE "C", model`

// capacityChanges are what can happen to one server, $2; a change that does not fit it changes nothing, or is refused.
var capacityChanges = map[string]string{
	"hold":     holdOneServer("interval '1 hour'"),
	"dead":     holdOneServer("interval '-1 second'"),
	"cancel":   `UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE organization_id = $1 AND server_id = $2 AND state = 'held'`,
	"die":      `UPDATE reservations SET expires_at = clock_timestamp() WHERE organization_id = $1 AND server_id = $2 AND state = 'held'`,
	"sell":     `INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server) SELECT $1, uuid_v7(), $2::uuid, uuid_v7()::text, 'person', '{"v": 1}'`,
	"end":      `UPDATE bindings SET ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE organization_id = $1 AND server_id = $2 AND ended_at IS NULL`,
	"ready":    `UPDATE servers SET state = 'ready', state_reason = NULL WHERE organization_id = $1 AND id = $2`,
	"broken":   `UPDATE servers SET state = 'maintenance', state_reason = 'fan' WHERE organization_id = $1 AND id = $2`,
	"model":    `UPDATE servers SET model = 'AX42' WHERE organization_id = $1 AND id = $2`,
	"no model": `UPDATE servers SET model = NULL WHERE organization_id = $1 AND id = $2`,
}

func holdOneServer(until string) string {
	return `INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
			idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		SELECT $1, uuid_v7(), $2::uuid, uuid_v7()::text, '1', 'key', clock_timestamp() + ` + until + `, clock_timestamp() + interval '1 day',
			uuid_v7()::text, '\x00', 'k1', '{}', '{}', '{"v": 1}', uuid_v7()`
}

type open struct{}

// Enabled implements allocation.Switch.
func (open) Enabled(context.Context, identity.OrganizationID) bool { return true }

// A catalog that was filled long ago, and one that knows nothing yet, count what SQL counts, whatever happened to the
// servers meanwhile that no word of this process tells of.
//
// Requirements: R61.
func TestCapacityIsWhatSQLCounts(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	tokens, err := reservation.ParseTokenKeys("k1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	require.NoError(t, err)
	organization := 0
	rapid.Check(t, func(rt *rapid.T) {
		organization++
		org := identity.OrganizationID(fmt.Sprint("org-", organization))
		caller := identity.LocalCaller(org, identity.Actor{Kind: identity.ActorSystem, ID: "test"})
		old := allocation.New(NewAllocations(pool), open{}, tokens)
		servers := addCounted(rt, pool, org)
		for range rapid.IntRange(1, 4).Draw(rt, "answers") {
			for range rapid.IntRange(0, 6).Draw(rt, "changes") {
				change := rapid.SampledFrom([]string{"hold", "dead", "cancel", "die", "sell", "end", "ready", "broken", "model", "no model"}).Draw(rt, "change")
				_, _ = pool.Exec(t.Context(), capacityChanges[change], org, rapid.SampledFrom(servers).Draw(rt, "server"))
			}
			fresh := allocation.New(NewAllocations(pool), open{}, tokens)
			want := counted(rt, pool, org)
			for _, a := range []*allocation.Allocator{old, fresh} {
				got, err := a.Capacity(t.Context(), caller, allocation.Grouping{Site: true, Model: true})
				require.NoError(rt, err)
				require.Equal(rt, want, got.Groups)
				var total allocation.Count
				for _, g := range got.Groups {
					require.Equal(rt, g.Servers, g.Free+g.Held+g.Bound+g.Out)
					total.Servers += g.Servers
				}
				require.Equal(rt, len(servers), total.Servers)
				require.Equal(rt, total.Servers, got.Total.Servers)
			}
		}
	})
}

func addCounted(rt *rapid.T, pool *pgxpool.Pool, org identity.OrganizationID) []uuid.UUID {
	_, err := pool.Exec(context.Background(), `INSERT INTO organizations (id, name) VALUES ($1, 'x')`, org)
	require.NoError(rt, err)
	servers := make([]uuid.UUID, rapid.IntRange(1, 8).Draw(rt, "servers"))
	for i := range servers {
		servers[i] = newID()
		_, err := pool.Exec(context.Background(), `INSERT INTO servers (organization_id, id, source, external_id, site, model, state)
			VALUES ($1, $2, 'test', $3, $4, nullif($5, ''), 'ready')`, org, servers[i], fmt.Sprint(i), pick(rt, "site", "FSN1", "HEL1"), pick(rt, "model", "", "AX41"))
		require.NoError(rt, err)
	}
	return servers
}

func counted(rt *rapid.T, pool *pgxpool.Pool, org identity.OrganizationID) []allocation.CapacityGroup {
	rows, err := pool.Query(context.Background(), capacitySQL, org)
	require.NoError(rt, err)
	groups, err := pgx.CollectRows(rows, scanCounted)
	require.NoError(rt, err)
	return groups
}

func scanCounted(row pgx.CollectableRow) (g allocation.CapacityGroup, err error) {
	err = row.Scan(&g.Site, &g.Model, &g.Servers, &g.Free, &g.Held, &g.Bound, &g.Out)
	return g, err
}
