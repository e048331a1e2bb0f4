package postgres

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/inventory"
)

func TestServersUpdate(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	created, err := b.service.Create(t.Context(), by, fullServer("m-1"))
	require.NoError(t, err)

	updated, err := b.service.Update(t.Context(), by, created.ID, inventory.Patch{
		Name: inventory.To("web-02"), Serial: inventory.To(""), MemoryMiB: inventory.To[int64](131072),
		Drives: inventory.To([]inventory.Drive{}), GPUs: inventory.To[[]inventory.GPU](nil), Price: inventory.To[*inventory.Price](nil),
		Tags: inventory.To[[]string](nil), Attributes: inventory.To(map[string]string{"tier": "b"}),
	}, created.Version)
	require.NoError(t, err)
	want := created
	want.Name, want.Serial, want.Memory.MiB, want.Drives, want.GPUs = "web-02", "", 131072, []inventory.Drive{}, nil
	want.Price, want.Tags, want.Attributes = nil, nil, map[string]string{"tier": "b"}
	want.Version, want.UpdatedAt = 2, updated.UpdatedAt
	require.Equal(t, want, updated)
	require.True(t, updated.UpdatedAt.After(created.UpdatedAt))
	read, err := b.service.Get(t.Context(), "acme", created.ID)
	require.NoError(t, err)
	require.Equal(t, updated, read)

	_, err = b.service.Update(t.Context(), by, created.ID, inventory.Patch{Name: inventory.To("web-03")}, created.Version)
	var mismatch *inventory.VersionError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, int64(2), mismatch.Current)

	same, err := b.service.Update(t.Context(), by, created.ID, inventory.Patch{Name: inventory.To("web-02")}, 2)
	require.NoError(t, err)
	require.Equal(t, updated, same, "a patch that changes nothing makes no version")

	require.Equal(t, []string{"server.created", "server.updated"}, auditActions(t, b.pool, "acme"))
	require.Equal(t, map[string]string{
		"name": "web-01 → web-02", "serial": "ABC123 → unknown", "memory.mib": "65536 → 131072", "gpus": `[{"model":"RTX 6000","count":1},{"count":2}] → unknown`,
		"drives": `[{"count":2,"nominal_gb":960,"medium":"ssd","interface":"nvme"},{"count":1,"nominal_gb":8000}] → []`,
		"price":  "38.0001 EUR → unknown", "tags": `["gold","a,b {c}"] → unknown`, "attributes": `{"quote\"d":"ü","tier":"a"} → {"tier":"b"}`,
	}, auditDetail(t, b.pool, created.ID, "server.updated"))
}

// An entry of the audit trail has room for 16 details, and every field that changed is named in it.
func TestServersUpdateOfEverythingIsAudited(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	created, err := b.service.Create(t.Context(), by, bareServer("m-1"))
	require.NoError(t, err)
	s := fullServer("")
	_, err = b.service.Update(t.Context(), by, created.ID, inventory.Patch{
		Name: inventory.To(s.Name), Serial: inventory.To(s.Serial), Site: inventory.To(s.Site), Rack: inventory.To(s.Rack),
		Position: inventory.To(s.Position), Manufacturer: inventory.To(s.Manufacturer), Model: inventory.To(s.Model),
		CPUVendor: inventory.To(s.CPU.Vendor), CPUModel: inventory.To(s.CPU.Model), Sockets: inventory.To(s.CPU.Sockets),
		Cores: inventory.To(s.CPU.Cores), Threads: inventory.To(s.CPU.Threads), Benchmarks: inventory.To(s.CPU.Benchmarks),
		MemoryMiB: inventory.To(s.Memory.MiB), MemoryECC: inventory.To(s.Memory.ECC), MemoryType: inventory.To(s.Memory.Type),
		Drives: inventory.To(s.Drives), RAID: inventory.To(s.RAID), GPUs: inventory.To(s.GPUs),
		UplinkMbps: inventory.To(s.UplinkMbps), Price: inventory.To(s.Price), Tags: inventory.To(s.Tags),
		Attributes: inventory.To(s.Attributes),
	}, 1)
	require.NoError(t, err)
	detail := auditDetail(t, b.pool, created.ID, "server.updated")
	require.Len(t, detail, 16)
	named := slices.Collect(maps.Keys(detail))
	named = append(named, strings.Split(detail["more"], ", ")...)
	require.Len(t, named, 16+23-15)
	require.Subset(t, named, []string{"name", "site", "raid", "uplink_mbps"})
}

// What a buyer was promised stays while the server is held or bound, and not a moment longer.
func TestServersInUseKeepTheirHardware(t *testing.T) {
	t.Parallel()
	rebuild := inventory.Patch{MemoryMiB: inventory.To[int64](32768)}
	describe := inventory.Patch{Tags: inventory.To([]string{"silver"})}
	tests := map[string]struct {
		occupy  []string // statements with the server's id
		wantErr error
	}{
		"a free server":                         {nil, nil},
		"a held server":                         {[]string{holdServer("1 hour")}, inventory.ErrInUse},
		"a hold past its deadline, not swept":   {[]string{holdServer("-1 second")}, nil},
		"a server that was sold before":         {[]string{bindServer}, inventory.ErrInUse},
		"a server whose binding has been ended": {[]string{bindServer, endBinding}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupServers(t)
			created, err := b.service.Create(t.Context(), by, fullServer("m-1"))
			require.NoError(t, err)
			key, _ := parseID(serverIDPrefix, string(created.ID))
			for _, statement := range tt.occupy {
				_, err := b.pool.Exec(t.Context(), statement, key)
				require.NoError(t, err)
			}

			_, err = b.service.Update(t.Context(), by, created.ID, rebuild, 0)
			require.ErrorIs(t, err, tt.wantErr)
			updated, err := b.service.Update(t.Context(), by, created.ID, describe, 0)
			require.NoError(t, err)
			require.Equal(t, []string{"silver"}, updated.Tags)
			require.Equal(t, tt.wantErr != nil, updated.Memory.MiB == 65536)
		})
	}
}

func holdServer(left string) string {
	return `
		INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, unit, created_by_kind, expires_at,
			max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		SELECT s.organization_id, gen_random_uuid(), s.id, 'A-1', '1', 1, 'key', clock_timestamp() + interval '` + left + `',
			clock_timestamp() + interval '1 day', 'k', '\x00', 'k1', '{}', '{}', freeze_server(s), s.id
		FROM servers s WHERE s.id = $1`
}

const (
	bindServer = `
		INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
		SELECT s.organization_id, gen_random_uuid(), s.id, 'svc-1', 'key', freeze_server(s) FROM servers s WHERE s.id = $1`
	endBinding = `UPDATE bindings SET ended_at = clock_timestamp(), ended_by_kind = 'key' WHERE server_id = $1`
)

// A change waits for whoever has the server locked, and then judges what it is by then.
func TestServersUpdateJudgesBehindTheLock(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	created, err := b.service.Create(t.Context(), by, fullServer("m-1"))
	require.NoError(t, err)
	key, _ := parseID(serverIDPrefix, string(created.ID))

	buyer, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = buyer.Exec(t.Context(), `SELECT FROM servers WHERE id = $1 FOR UPDATE`, key)
	require.NoError(t, err)

	answer := make(chan error)
	waits(t, b.pool, func() {
		_, err := b.service.Update(t.Context(), by, created.ID, inventory.Patch{RAID: inventory.To(inventory.RAIDNone)}, 1)
		answer <- err
	})
	_, err = buyer.Exec(t.Context(), bindServer, key)
	require.NoError(t, err)
	require.NoError(t, buyer.Commit(t.Context()))
	require.ErrorIs(t, <-answer, inventory.ErrInUse)
}
