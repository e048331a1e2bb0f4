package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/inventory"
	"allocator/store/postgres/postgrestest"
)

// One serverRow reads all rows of a query: nothing of a row may stay for the next one, whichever comes first.
func TestServerRowKeepsNothing(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	full, bare, none := fullServer("m-1"), bareServer("m-2"), noneServer("m-3")
	again := fullServer("m-4")
	again.Tags, again.Drives = []string{"silver"}, []inventory.Drive{{Count: 4, NominalGB: 512}}
	_, err := b.service.CreateMany(t.Context(), by, []inventory.Server{full, bare, again, none, bareServer("m-5")})
	require.NoError(t, err)

	list, err := b.service.List(t.Context(), "acme", inventory.Filter{})
	require.NoError(t, err)
	require.Len(t, list, 5)
	for i, want := range []inventory.Server{full, bare, again, none, bareServer("m-5")} {
		got := list[i]
		want.ID, want.Version, want.CreatedAt, want.UpdatedAt = got.ID, 1, got.CreatedAt, got.UpdatedAt
		require.Equal(t, want, got)
	}
}

// What an older version froze must be read as long as it is kept, so this text never changes.
const frozenByVersion1 = `{"v": 1, "id": "0190c6d2-b0c4-7d3f-8a5e-9b1c2d3e4f50", "organization_id": "acme", "size": 1, "changed_by": "741", "source": "hetzner",
	"external_id": "2945706", "name": "web-01", "serial": "ABC123", "site": "FSN1", "rack": "A1", "position": "12.5",
	"manufacturer": "Dell", "model": "R640", "cpu_vendor": "Intel", "cpu_model": "Xeon", "cpu_sockets": 2,
	"cpu_cores": 16, "cpu_threads": 32, "cpu_benchmarks": {"passmark": 20000}, "memory_mib": 65536, "memory_ecc": true,
	"memory_type": "DDR4", "drives": [{"count": 2, "medium": "ssd", "interface": "nvme", "nominal_gb": 960}],
	"raid": "hardware", "gpus": [], "uplink_mbps": 1000, "price_amount": 38.0001, "price_currency": "EUR",
	"tags": ["gold"], "attributes": {"tier": "a"}, "state": "ready", "state_reason": "tested", "version": 3,
	"created_at": "2026-03-13T10:00:00.123456+00:00", "updated_at": "2026-03-14T11:00:00+01:00"}`

func TestDecodeServer(t *testing.T) {
	t.Parallel()
	server, err := decodeServer([]byte(frozenByVersion1))
	require.NoError(t, err)
	ecc := true
	require.Equal(t, inventory.Server{
		ID: "srv_0190c6d2b0c47d3f8a5e9b1c2d3e4f50", Source: "hetzner", ExternalID: "2945706", Name: "web-01",
		Serial: "ABC123", Site: "FSN1", Rack: "A1", Position: "12.5", Manufacturer: "Dell", Model: "R640",
		CPU: inventory.CPU{
			Vendor: "Intel", Model: "Xeon", Sockets: 2, Cores: 16, Threads: 32, Benchmarks: map[string]int64{"passmark": 20000},
		},
		Memory: inventory.Memory{MiB: 65536, ECC: &ecc, Type: "DDR4"},
		Drives: []inventory.Drive{{Count: 2, NominalGB: 960, Medium: inventory.MediumSSD, Interface: "nvme"}},
		RAID:   inventory.RAIDHardware, GPUs: []inventory.GPU{}, UplinkMbps: 1000,
		Price: &inventory.Price{Amount: 380_001, Currency: "EUR"}, Tags: []string{"gold"},
		Attributes: map[string]string{"tier": "a"}, State: inventory.StateReady, StateReason: "tested", Version: 3,
		CreatedAt: time.Date(2026, 3, 13, 10, 0, 0, 123456000, time.UTC),
		UpdatedAt: time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC),
	}, server)
}

func TestDecodeServerRefuses(t *testing.T) {
	t.Parallel()
	for frozen, want := range map[string]string{
		`{"v": 2, "id": "1"}`: "shape 2",
		`{}`:                  "shape 0",
		`[]`:                  "cannot be read",
		`{"v": 1, "id": "0190c6d2-b0c4-7d3f-8a5e-9b1c2d3e4f50", "price_currency": "EUR", "price_amount": 1e3}`: "price",
	} {
		_, err := decodeServer([]byte(frozen))
		require.ErrorContains(t, err, want, frozen)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	id := newID()
	text := formatID("srv_", id)
	parsed, ok := parseID("srv_", text)
	require.True(t, ok)
	require.Equal(t, id, parsed)
	require.Less(t, text, formatID("srv_", newID()), "ids sort by the time of their creation")
	for _, wrong := range []string{
		"", "srv_", text[:35], text + "0", "res_" + text[4:], "SRV_" + text[4:], text[:35] + "g", text[:35] + "A", id.String(),
	} {
		_, ok := parseID("srv_", wrong)
		require.False(t, ok, wrong)
	}
}

// BenchmarkListServers reads an inventory of ten thousand machines, as each reservation does.
func BenchmarkListServers(b *testing.B) {
	pool := postgrestest.New(b)
	store := NewServers(pool)
	servers := make([]inventory.Server, 10_000)
	for i := range servers {
		servers[i] = fullServer(fmt.Sprintf("m-%d", i))
		servers[i].Rack = fmt.Sprintf("R%d", i%200)
		servers[i].Drives[0].NominalGB = int64(100 * (1 + i%250))
	}
	_, err := store.CreateServers(b.Context(), by, servers)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		list, err := store.Servers(b.Context(), "acme", inventory.Filter{})
		require.NoError(b, err)
		require.Len(b, list, len(servers))
	}
}
