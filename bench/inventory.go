package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/inventory"
	"allocator/inventory/importer"
)

// inventoryOf is a stock of n servers: the rows of the importer's sample of real machines, over and over, each copy with
// an identity, a rack and a hall of its own. The halls are those that the sample has at the row's site, so that there
// are about as many kinds of machines as a provider of that size would have, and the mix of hardware is the real one.
type inventoryOf struct {
	ids  []uuid.UUID // of all, in the order of loading
	free []uuid.UUID // of those that are not sold, shuffled

	rows  []sampleRow
	halls map[string][]string // by site
}

// sampleRow is one real machine with its lists written as the database takes them.
type sampleRow struct {
	inventory.Server
	drives, gpus string
	attributes   map[string]string
}

// serversInRack is how many dedicated servers stand in one rack.
const serversInRack = 40

func newInventory(n int, seed uint64) (*inventoryOf, error) {
	sample, err := importer.Sample()
	if err != nil {
		return nil, err
	}
	v := &inventoryOf{ids: make([]uuid.UUID, n), halls: map[string][]string{}}
	for _, server := range sample {
		drives, badDrives := json.Marshal(server.Drives)
		gpus, badGPUs := json.Marshal(server.GPUs)
		if badDrives != nil || badGPUs != nil {
			return nil, fmt.Errorf("write a server of the sample: %w, %w", badDrives, badGPUs)
		}
		v.rows = append(v.rows, sampleRow{server, string(drives), string(gpus), server.Attributes})
		hall := server.Attributes["datacenter"]
		if !slices.Contains(v.halls[server.Site], hall) {
			v.halls[server.Site] = append(v.halls[server.Site], hall)
		}
	}
	random := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // the same stock for the same seed
	for i := range v.ids {
		v.ids[i] = serverID(i, random)
	}
	v.free = slices.Clone(v.ids)
	random.Shuffle(n, func(i, j int) { v.free[i], v.free[j] = v.free[j], v.free[i] })
	return v, nil
}

// epoch is when the servers of a stock were recorded, in milliseconds: 2026-01-01.
const epoch = 1767225600000

// serverID is a UUIDv7 that depends on the seed alone, as the order of equals does.
func serverID(i int, random *rand.Rand) uuid.UUID {
	var id uuid.UUID
	at := uint64(epoch + i) //nolint:gosec // positive
	binary.BigEndian.PutUint64(id[:8], at<<16|0x7000|random.Uint64()&0x0fff)
	binary.BigEndian.PutUint64(id[8:], random.Uint64()&0x3fffffffffffffff|0x8000000000000000)
	return id
}

var serverColumns = []string{
	"organization_id", "id", "source", "external_id", "name", "site", "rack", "position", "cpu_vendor", "cpu_model",
	"cpu_sockets", "memory_mib", "memory_ecc", "memory_type", "drives", "raid", "gpus", "uplink_mbps",
	"price_amount", "price_currency", "tags", "attributes", "state",
}

// load copies the stock into the table of servers, through its triggers and constraints.
func (v *inventoryOf) load(ctx context.Context, admin *pgxpool.Pool) error {
	i := -1
	_, err := admin.CopyFrom(ctx, pgx.Identifier{"servers"}, serverColumns, pgx.CopyFromFunc(func() ([]any, error) {
		if i++; i == len(v.ids) {
			return nil, nil
		}
		return v.row(i), nil
	}))
	if err != nil {
		return fmt.Errorf("load %d servers: %w", len(v.ids), err)
	}
	_, err = admin.Exec(ctx, `VACUUM (ANALYZE) servers`)
	return err
}

// row is the i-th server as a row of the table.
func (v *inventoryOf) row(i int) []any {
	s, copied := &v.rows[i%len(v.rows)], i/len(v.rows)
	halls := v.halls[s.Site]
	hall := halls[copied%len(halls)]
	attributes := maps.Clone(s.attributes)
	attributes["datacenter"] = hall
	var price, currency any
	if s.Price != nil {
		price, currency = s.Price.Amount.String(), s.Price.Currency
	}
	return []any{
		string(org), v.ids[i], s.Source, fmt.Sprintf("%s-%d", s.ExternalID, copied), fmt.Sprintf("%s-%d", s.Name, copied),
		s.Site, fmt.Sprintf("%s-R%04d", hall, i/serversInRack), fmt.Sprint(i%serversInRack + 1), known(s.CPU.Vendor), known(s.CPU.Model),
		known(s.CPU.Sockets), known(s.Memory.MiB), s.Memory.ECC, known(s.Memory.Type), s.drives, known(string(s.RAID)), s.gpus,
		known(s.UplinkMbps), price, currency, listed(s.Tags), attributes, string(s.State),
	}
}

// known is NULL for what the sample does not know.
func known[T comparable](value T) any {
	if value == *new(T) {
		return nil
	}
	return value
}

func listed(tags []string) []string {
	if tags == nil {
		return []string{}
	}
	return tags
}

// Of twenty servers so many are left to be reserved. No inventory in use is free to the last server, and one that is makes
// statistics that fit nothing that comes later.
const (
	leftOfFree       = 19
	leftOfNearlySold = 1
)

// sell binds what is not among that many of twenty, through the triggers of bindings.
func (v *inventoryOf) sell(ctx context.Context, admin *pgxpool.Pool, ofTwenty int) error {
	left := max(1, len(v.free)*ofTwenty/20)
	sold := v.free[left:]
	v.free = v.free[:left]
	_, err := admin.Exec(ctx, `INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
		SELECT s.organization_id, uuid_v7(), s.id, 'sold-' || s.id, 'person', freeze_server(s)
		FROM servers s WHERE s.organization_id = $1 AND s.id = ANY ($2)`, org, sold)
	if err != nil {
		return fmt.Errorf("sell %d servers: %w", len(sold), err)
	}
	_, err = admin.Exec(ctx, `VACUUM (ANALYZE) bindings, occupancy`)
	return err
}
