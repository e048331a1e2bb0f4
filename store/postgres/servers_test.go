package postgres

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/inventory"
	"allocator/inventory/importer"
	"allocator/store/postgres/postgrestest"
)

// How long and how often a test looks for what another session does; it fails only if that never happens.
const (
	waitLimit = 30 * time.Second
	waitPause = 5 * time.Millisecond
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

func TestServersAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	for name, server := range map[string]inventory.Server{
		"everything known": fullServer("m-1"), "everything unknown": bareServer("m-2"), "known to have nothing": noneServer("m-3"),
	} {
		created, err := b.service.Create(t.Context(), by, server)
		require.NoError(t, err, name)

		read, err := b.service.Get(t.Context(), "acme", created.ID)
		require.NoError(t, err, name)
		require.Equal(t, created, read, name)

		require.Regexp(t, `^srv_[0-9a-f]{32}$`, string(read.ID), name)
		require.False(t, read.CreatedAt.IsZero(), name)
		require.False(t, read.UpdatedAt.Before(read.CreatedAt), name)
		server.ID, server.Version, server.CreatedAt, server.UpdatedAt = read.ID, 1, read.CreatedAt, read.UpdatedAt
		require.Equal(t, server, read, name)
	}
}

// The database ranks by its generated column and Go by Server.Size; the sample has what real machines have.
func TestServerSizeIsTheSameInTheDatabase(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	servers, err := importer.Sample()
	require.NoError(t, err)
	servers = append(servers, fullServer("m-1"), bareServer("m-2"), noneServer("m-3"))
	created, err := b.service.CreateMany(t.Context(), by, servers)
	require.NoError(t, err)
	require.Equal(t, inventory.Created{Created: len(servers)}, created)

	list, err := b.service.List(t.Context(), "acme", inventory.Filter{})
	require.NoError(t, err)
	rows, err := b.pool.Query(t.Context(), `SELECT size FROM servers ORDER BY id`)
	require.NoError(t, err)
	sizes, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	require.Len(t, list, len(servers))
	for i, got := range list {
		require.Equal(t, got.Size(), sizes[i], got.ExternalID)
		want := servers[i]
		want.ID, want.Version, want.CreatedAt, want.UpdatedAt = got.ID, 1, got.CreatedAt, got.UpdatedAt
		require.Equal(t, want, got, "in the order in which they were given")
	}
}

// A frozen server is the server that was read at that moment.
func TestServersAreFrozenAsTheyAre(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	for _, server := range []inventory.Server{fullServer("m-1"), bareServer("m-2"), noneServer("m-3")} {
		created, err := b.service.Create(t.Context(), by, server)
		require.NoError(t, err)
		frozen := freeze(t, b.pool, created.ID)
		thawed, err := decodeServer(frozen)
		require.NoError(t, err)
		require.Equal(t, created, thawed)
	}
}

func freeze(t *testing.T, pool *pgxpool.Pool, id inventory.ServerID) (frozen []byte) {
	t.Helper()
	key, ok := parseID(serverIDPrefix, string(id))
	require.True(t, ok)
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT freeze_server(s) FROM servers s WHERE id = $1`, key).Scan(&frozen))
	return frozen
}

func TestServersCreateAnswersExists(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	_, err := b.service.Create(t.Context(), by, fullServer("m-1"))
	require.NoError(t, err)
	_, err = b.service.Create(t.Context(), by, bareServer("m-1"))
	require.ErrorIs(t, err, inventory.ErrExists)

	other := bareServer("m-1")
	other.Source = "netbox"
	_, err = b.service.Create(t.Context(), by, other)
	require.NoError(t, err, "another system has ids of its own")
	elsewhere := by
	elsewhere.Organization = "other"
	_, err = b.service.Create(t.Context(), elsewhere, bareServer("m-1"))
	require.NoError(t, err, "another organization never hears of it")
	require.Equal(t, []string{"server.created", "server.created"}, auditActions(t, b.pool, "acme"))
}

// IM-01: the same file again creates nothing and changes nothing.
func TestServersCreateManyCanBeRepeated(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	var servers []inventory.Server
	for i := range 2*createChunk + 1 {
		servers = append(servers, bareServer(fmt.Sprintf("m-%d", i)))
	}
	created, err := b.service.CreateMany(t.Context(), by, servers[:10])
	require.NoError(t, err)
	require.Equal(t, inventory.Created{Created: 10}, created)
	before := contents(t, b.pool)

	for i := range servers {
		servers[i].Name = "renamed"
	}
	created, err = b.service.CreateMany(t.Context(), by, servers)
	require.NoError(t, err)
	require.Equal(t, inventory.Created{Created: len(servers) - 10, Existing: 10}, created)
	after := contents(t, b.pool)
	for externalID, record := range before {
		require.Equal(t, record, after[externalID], "what was there is left as it is")
	}

	created, err = b.service.CreateMany(t.Context(), by, servers)
	require.NoError(t, err)
	require.Equal(t, inventory.Created{Existing: len(servers)}, created)
	require.Equal(t, after, contents(t, b.pool))
	require.Equal(t, []string{"servers.created", "servers.created"}, auditActions(t, b.pool, "acme"),
		"the third changed nothing")
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

// One record that the database refuses takes all others with it.
func TestServersCreateManyIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	broken := bareServer("m-3")
	broken.RAID = "not validated here"
	_, err := b.store.CreateServers(t.Context(), by, []inventory.Server{bareServer("m-1"), broken, bareServer("m-2")})
	require.ErrorContains(t, err, "servers_raid_known")
	require.Empty(t, contents(t, b.pool))
	require.Empty(t, auditActions(t, b.pool, "acme"))
}

// Two imports of the same rows in opposite order wait for each other's rows; none may fail, and no row comes twice.
func TestServersCreateManyAtOnce(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	var servers []inventory.Server
	for i := range 200 {
		servers = append(servers, bareServer(fmt.Sprintf("m-%03d", i)))
	}
	backwards := slices.Clone(servers)
	slices.Reverse(backwards)

	type result struct {
		created inventory.Created
		err     error
	}
	results := make(chan result)
	for _, list := range [][]inventory.Server{servers, backwards, servers, backwards} {
		go func() {
			created, err := b.store.CreateServers(t.Context(), by, list)
			results <- result{created, err}
		}()
	}
	total := 0
	for range 4 {
		r := <-results
		require.NoError(t, r.err)
		total += r.created.Created
	}
	require.Equal(t, 200, total)
	require.Len(t, contents(t, b.pool), 200)
}

func TestServersOfAnotherOrganizationAreUnknown(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	created, err := b.service.Create(t.Context(), by, fullServer("m-1"))
	require.NoError(t, err)

	stranger := by
	stranger.Organization = "other"
	for name, id := range map[string]inventory.ServerID{
		"one that exists elsewhere":  created.ID,
		"one that exists nowhere":    "srv_0190c6d2b0c47d3f8a5e9b1c2d3e4f50",
		"the same in another form":   inventory.ServerID(strings.ToUpper(string(created.ID))),
		"an id of another kind":      inventory.ServerID(strings.Replace(string(created.ID), "srv_", "res_", 1)),
		"no id at all":               "",
		"an id with a blank":         created.ID + " ",
		"an id with a NUL":           created.ID[:35] + "\x00",
		"a uuid as the database has": "0190c6d2-b0c4-7d3f-8a5e-9b1c2d3e4f50",
	} {
		_, err := b.service.Get(t.Context(), "other", id)
		require.Equal(t, inventory.ErrNotFound, err, name)
		_, err = b.service.Update(t.Context(), stranger, id, inventory.Patch{Name: inventory.To("x")}, 0)
		require.ErrorIs(t, err, inventory.ErrNotFound, name)
	}
	list, err := b.service.List(t.Context(), "other", inventory.Filter{})
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestServersFilters(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	full, bare, none := fullServer("m-1"), bareServer("x_2"), noneServer("M%3")
	full.Name, full.Serial, none.Name, none.Serial, none.Model = "Web_01", "ABC123", "db-01", "abd\\124", "R640"
	_, err := b.service.CreateMany(t.Context(), by, []inventory.Server{full, bare, none})
	require.NoError(t, err)

	tests := map[string]struct {
		filter inventory.Filter
		want   []string
	}{
		"nothing asked":                        {inventory.Filter{}, []string{"m-1", "x_2", "M%3"}},
		"a site":                               {inventory.Filter{Sites: []string{"FSN1"}}, []string{"m-1"}},
		"one of two sites":                     {inventory.Filter{Sites: []string{"FSN1", "HEL1"}}, []string{"m-1", "x_2", "M%3"}},
		"a site in other letters":              {inventory.Filter{Sites: []string{"fsn1"}}, nil},
		"a rack":                               {inventory.Filter{Racks: []string{"A1", "A2"}}, []string{"m-1"}},
		"a state":                              {inventory.Filter{States: []inventory.State{inventory.StatePlanned}}, []string{"x_2", "M%3"}},
		"a model and a state":                  {inventory.Filter{Models: []string{"R640"}, States: []inventory.State{inventory.StatePlanned}}, []string{"M%3"}},
		"a name":                               {inventory.Filter{Names: []string{"db-01"}}, []string{"M%3"}},
		"a serial in other letters":            {inventory.Filter{Serials: []string{"abc123"}}, []string{"m-1"}},
		"a part of a serial is no serial":      {inventory.Filter{Serials: []string{"abc"}}, nil},
		"words in a name, case aside":          {inventory.Filter{Query: "WEB"}, []string{"m-1"}},
		"words in a model":                     {inventory.Filter{Query: "640"}, []string{"m-1", "M%3"}},
		"words in an external id":              {inventory.Filter{Query: "m-1"}, []string{"m-1"}},
		"a percent sign is a percent sign":     {inventory.Filter{Query: "%"}, []string{"M%3"}},
		"an underscore is an underscore":       {inventory.Filter{Query: "_"}, []string{"m-1", "x_2"}},
		"a backslash is a backslash":           {inventory.Filter{Query: `d\1`}, []string{"M%3"}},
		"a quote ends nothing":                 {inventory.Filter{Query: `' OR true --`}, nil},
		"words that are nowhere":               {inventory.Filter{Query: "nowhere"}, nil},
		"words and a site that exclude it":     {inventory.Filter{Query: "web", Sites: []string{"HEL1"}}, nil},
		"no more than so many":                 {inventory.Filter{Limit: 2}, []string{"m-1", "x_2"}},
		"an empty list of values asks nothing": {inventory.Filter{Sites: []string{}}, []string{"m-1", "x_2", "M%3"}},
	}
	for name, tt := range tests {
		list, err := b.service.List(t.Context(), "acme", tt.filter)
		require.NoError(t, err, name)
		var ids []string // in the order in which they were given
		for _, s := range list {
			ids = append(ids, s.ExternalID)
		}
		require.Equal(t, tt.want, ids, name)
	}
}

// Pages in the order of ids: whatever exists throughout is seen once, also while others are created.
func TestServersPages(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	var servers []inventory.Server
	for i := range 23 {
		servers = append(servers, bareServer(fmt.Sprintf("m-%02d", i)))
	}
	_, err := b.service.CreateMany(t.Context(), by, servers)
	require.NoError(t, err)

	seen := map[string]int{}
	filter := inventory.Filter{Limit: 5}
	for page := 0; ; page++ {
		list, err := b.service.List(t.Context(), "acme", filter)
		require.NoError(t, err)
		require.True(t, slices.IsSortedFunc(list, func(a, b inventory.Server) int { return strings.Compare(string(a.ID), string(b.ID)) }))
		for _, s := range list {
			seen[s.ExternalID]++
		}
		if len(list) < filter.Limit {
			break
		}
		filter.After = list[len(list)-1].ID
		_, err = b.service.Create(t.Context(), by, bareServer(fmt.Sprintf("late-%d", page)))
		require.NoError(t, err)
		require.Less(t, page, 50, "each page makes one more and shows five, so the list must end")
	}
	for _, s := range servers {
		require.Equal(t, 1, seen[s.ExternalID], s.ExternalID)
	}

	_, err = b.service.List(t.Context(), "acme", inventory.Filter{After: "somewhere"})
	require.ErrorIs(t, err, inventory.ErrNotFound)
}

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

// IM-20: what a buyer was promised stays while the server is held or bound, and not a moment longer.
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
	go func() {
		_, err := b.service.Update(t.Context(), by, created.ID, inventory.Patch{RAID: inventory.To(inventory.RAIDNone)}, 1)
		answer <- err
	}()
	waitForWaiter(t, b.pool)
	_, err = buyer.Exec(t.Context(), bindServer, key)
	require.NoError(t, err)
	require.NoError(t, buyer.Commit(t.Context()))
	require.ErrorIs(t, <-answer, inventory.ErrInUse)
}

// waitForWaiter returns when a session waits for a lock of another.
func waitForWaiter(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	require.Eventually(t, func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), `
			SELECT EXISTS (SELECT FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waiting)
		return err == nil && waiting
	}, waitLimit, waitPause)
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
