package postgres

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/inventory"
	"allocator/store/postgres/postgrestest"
)

// by is the operator of these tests.
var by = inventory.Change{Organization: "acme", ActorKind: "key", ActorID: "key_1", RequestID: "req-1"}

type serversBundle struct {
	pool    *pgxpool.Pool
	store   *Servers
	service *inventory.Service
}

func setupServers(t *testing.T) serversBundle {
	t.Helper()
	pool := postgrestest.New(t)
	store := NewServers(pool)
	return serversBundle{pool: pool, store: store, service: inventory.NewService(store)}
}

// fullServer is a record with everything in it.
func fullServer(externalID string) inventory.Server {
	ecc := true
	return inventory.Server{
		Source: "api", ExternalID: externalID, Name: "web-01", Serial: "ABC123", Site: "FSN1", Rack: "A1", Position: "12.5",
		Manufacturer: "Dell", Model: "R640",
		CPU: inventory.CPU{
			Vendor: "Intel", Model: "Xeon Gold 6130", Sockets: 2, Cores: 32, Threads: 64,
			Benchmarks: map[string]int64{"passmark": 20000},
		},
		Memory: inventory.Memory{MiB: 65536, ECC: &ecc, Type: "DDR4"},
		Drives: []inventory.Drive{
			{Count: 2, NominalGB: 960, Medium: inventory.MediumSSD, Interface: "nvme"}, {Count: 1, NominalGB: 8000},
		},
		RAID: inventory.RAIDHardware, GPUs: []inventory.GPU{{Count: 1, Model: "RTX 6000"}, {Count: 2}}, UplinkMbps: 1000,
		Price: &inventory.Price{Amount: 380_001, Currency: "EUR"},
		Tags:  []string{"gold", "a,b {c}"}, Attributes: map[string]string{"tier": "a", "quote\"d": "ü"},
		State: inventory.StateMaintenance, StateReason: "fans",
	}
}

// bareServer is a record with nothing in it but what must be.
func bareServer(externalID string) inventory.Server {
	return inventory.Server{Source: "api", ExternalID: externalID, Site: "HEL1", State: inventory.StatePlanned}
}

// noneServer is a record that is known to have nothing.
func noneServer(externalID string) inventory.Server {
	s := bareServer(externalID)
	s.Drives, s.GPUs, s.RAID = []inventory.Drive{}, []inventory.GPU{}, inventory.RAIDNone
	no := false
	s.Memory.ECC, s.Price = &no, &inventory.Price{Currency: "EUR"}
	return s
}

// contents is every record of acme, by external_id.
func contents(t *testing.T, pool *pgxpool.Pool) map[string]inventory.Server {
	t.Helper()
	servers, err := NewServers(pool).Servers(t.Context(), "acme", inventory.Filter{})
	require.NoError(t, err)
	records := map[string]inventory.Server{}
	for _, s := range servers {
		records[s.ExternalID] = s
	}
	return records
}

func auditActions(t *testing.T, pool *pgxpool.Pool, org string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		SELECT action FROM audit WHERE organization_id = $1 AND actor_kind = 'key' AND actor_id = 'key_1'
			AND outcome = 'done' AND request_id = 'req-1' ORDER BY at, id`, org)
	require.NoError(t, err)
	actions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return actions
}

func auditDetail(t *testing.T, pool *pgxpool.Pool, id inventory.ServerID, action string) (detail map[string]string) {
	t.Helper()
	var text []byte
	require.NoError(t, pool.QueryRow(t.Context(),
		`SELECT detail FROM audit WHERE subject = $1 AND action = $2`, string(id), action).Scan(&text))
	require.NoError(t, json.Unmarshal(text, &detail))
	return detail
}
