package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// A server that is held and sold at once is found, and leaves one event for its organization's support however often it
// is looked for. Nothing that the product does is found.
//
// Requirements: L30.
func TestOversellIsFoundAndToldOnce(t *testing.T) {
	t.Parallel()
	pool := openPool(t, postgrestest.URL(t), 2)
	audit := NewOversell(pool)
	execute(t, pool, `INSERT INTO organizations (id, name) VALUES ('acme', 'Acme'), ('globex', 'Globex')`)
	execute(t, pool, `INSERT INTO servers (organization_id, id, source, external_id, site, state)
		SELECT org, gen_random_uuid(), 'test', g::text, 'FSN1', 'ready' FROM generate_series(1, 3) g, unnest(ARRAY ['acme', 'globex']) org`)
	const hold = `INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
			idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		SELECT organization_id, uuid_v7(), id, 'A-' || external_id, '1', 'person', clock_timestamp() + interval '1 minute',
			clock_timestamp() + interval '1 hour', external_id, '', 'test', '{}', '{}', '{"v": 1}', id FROM servers WHERE external_id = $1`
	bind := func(externalID string) {
		service := reservation.NewService(NewReservations(pool), reservation.TokenKeys{})
		for _, of := range []string{org, otherOrg} {
			id := formatID(serverIDPrefix, read[[16]byte](t, pool, `SELECT id FROM servers WHERE organization_id = $1 AND external_id = $2`, of, externalID))
			_, err := service.BindDirectly(t.Context(), identity.LocalCaller(identity.OrganizationID(of), identity.Actor{Kind: identity.ActorSystem}),
				reservation.DirectBinding{ServerID: inventory.ServerID(id), ServiceID: "vps-" + externalID, Reason: "sold before"})
			require.NoError(t, err)
		}
	}
	find := func() []Oversold {
		found, err := audit.Find(t.Context(), "audit")
		require.NoError(t, err)
		return found
	}
	execute(t, pool, hold, "1")
	bind("2")
	bind("3")
	require.Empty(t, find(), "one is held, two are sold")

	execute(t, pool, `ALTER TABLE reservations DISABLE TRIGGER USER`)
	execute(t, pool, hold, "2")
	execute(t, pool, `ALTER TABLE reservations ENABLE TRIGGER USER`)
	const told = `SELECT count(*) FROM events e JOIN bindings b ON b.organization_id = e.organization_id AND b.id = e.binding_id
		JOIN reservations r ON r.organization_id = e.organization_id AND r.id = e.reservation_id AND r.server_id = b.server_id AND r.order_id = e.order_id
		WHERE e.type = 'server.oversold' AND e.server_id = b.server_id AND e.actor_kind = 'system' AND e.actor_id = 'audit'`
	for range 2 {
		found := find()
		require.Len(t, found, 2)
		require.Equal(t, []string{org, otherOrg}, []string{found[0].Organization, found[1].Organization})
		require.Equal(t, formatID(serverIDPrefix, read[[16]byte](t, pool, `SELECT id FROM servers WHERE organization_id = 'acme' AND external_id = '2'`)), found[0].ServerID)
		require.Equal(t, 2, read[int](t, pool, told))
	}
	require.Equal(t, 2, read[int](t, pool, `SELECT count(*) FROM events WHERE type = 'server.oversold'`))

	_, err := NewOversell(awayPool(t)).Find(t.Context(), "audit")
	require.ErrorIs(t, err, reservation.ErrUnavailable)
}
