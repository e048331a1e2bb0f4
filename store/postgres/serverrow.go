package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"allocator/inventory"
)

// serverIDPrefix begins the id of every server.
const serverIDPrefix = "srv_"

// serverColumns are the columns of servers (alias s) that serverRow reads, in the order of its targets. Empty maps and
// arrays travel as NULL, since most servers have none; money travels in the unit of inventory.Amount.
const serverColumns = `s.id, s.source, s.external_id, s.name, s.serial, s.site, s.rack, s.position,
	s.manufacturer, s.model, s.cpu_vendor, s.cpu_model,
	coalesce(s.cpu_sockets, 0), coalesce(s.cpu_cores, 0), coalesce(s.cpu_threads, 0), nullif(s.cpu_benchmarks, '{}'),
	coalesce(s.memory_mib, 0), s.memory_ecc, s.memory_type, s.drives, s.raid, s.gpus, coalesce(s.uplink_mbps, 0),
	coalesce((s.price_amount * 10000)::bigint, 0), s.price_currency, nullif(s.tags, '{}'), nullif(s.attributes, '{}'),
	s.state, s.state_reason, s.version, s.created_at, s.updated_at`

// columnsOfServer names what serverColumns selects, for a statement that selects it from a part of itself.
var columnsOfServer = func() string {
	names := make([]string, len((&serverRow{}).targets()))
	for i := range names {
		names[i] = "server_" + strconv.Itoa(i+1)
	}
	return strings.Join(names, ", ")
}()

// serverRow reads rows of servers. One serverRow serves all rows of one query, one after the other, because a list of
// ten thousand machines repeats the same few sites, models and drives: each distinct one is kept in memory once and
// shared by the servers that have it. Servers that came from one query must therefore not be written through.
type serverRow struct {
	pool textPool

	id                   pgtype.UUID
	source               pooledText
	externalID           optionalText
	name, serial         optionalText
	site, rack, position pooledText

	manufacturer, model, cpuVendor, cpuModel pooledText
	sockets, cores, threads                  int64
	benchmarks                               pooledPart[map[string]int64]

	memoryMiB  int64
	memoryECC  pgtype.Bool
	memoryType pooledText
	drives     pooledPart[[]inventory.Drive]
	raid       pooledText
	gpus       pooledPart[[]inventory.GPU]
	uplinkMbps int64

	priceAmount   int64
	priceCurrency pooledText
	tags          []string
	attributes    pooledPart[map[string]string]

	state       pooledText
	stateReason optionalText
	version     int64
	createdAt   time.Time
	updatedAt   time.Time

	columns []any
}

// targets returns what Scan needs, in the order of serverColumns. They stay the same for the life of the row.
func (r *serverRow) targets() []any {
	if r.columns != nil {
		return r.columns
	}
	for _, text := range []*pooledText{
		&r.source, &r.site, &r.rack, &r.position, &r.manufacturer, &r.model, &r.cpuVendor, &r.cpuModel, &r.memoryType,
		&r.raid, &r.priceCurrency, &r.state,
	} {
		text.pool = &r.pool
	}
	r.columns = []any{
		&r.id, &r.source, &r.externalID, &r.name, &r.serial, &r.site, &r.rack, &r.position,
		&r.manufacturer, &r.model, &r.cpuVendor, &r.cpuModel,
		&r.sockets, &r.cores, &r.threads, &r.benchmarks,
		&r.memoryMiB, &r.memoryECC, &r.memoryType, &r.drives, &r.raid, &r.gpus, &r.uplinkMbps,
		&r.priceAmount, &r.priceCurrency, &r.tags, &r.attributes,
		&r.state, &r.stateReason, &r.version, &r.createdAt, &r.updatedAt,
	}
	return r.columns
}

// server returns the server of the row that was scanned last. An error means that the database holds JSON that no
// version of this program writes.
func (r *serverRow) server() (inventory.Server, error) {
	s := inventory.Server{
		ID:         inventory.ServerID(formatID(serverIDPrefix, r.id.Bytes)),
		Source:     r.source.text,
		ExternalID: string(r.externalID),
		Name:       string(r.name),
		Serial:     string(r.serial),
		Site:       r.site.text,
		Rack:       r.rack.text,
		Position:   r.position.text,

		Manufacturer: r.manufacturer.text,
		Model:        r.model.text,

		CPU: inventory.CPU{
			Vendor: r.cpuVendor.text, Model: r.cpuModel.text, Benchmarks: r.benchmarks.value,
			Sockets: r.sockets, Cores: r.cores, Threads: r.threads,
		},
		Memory:     inventory.Memory{MiB: r.memoryMiB, ECC: r.ecc(), Type: r.memoryType.text},
		Drives:     r.drives.value,
		RAID:       inventory.RAID(r.raid.text),
		GPUs:       r.gpus.value,
		UplinkMbps: r.uplinkMbps,

		Price:      r.price(),
		Tags:       r.tags,
		Attributes: r.attributes.value,

		State:       inventory.State(r.state.text),
		StateReason: string(r.stateReason),
		Version:     r.version,
		CreatedAt:   r.createdAt.UTC(),
		UpdatedAt:   r.updatedAt.UTC(),
	}
	r.tags = nil // the next row must not be read into this server's tags
	for _, err := range []error{r.benchmarks.err, r.drives.err, r.gpus.err, r.attributes.err} {
		if err != nil {
			return inventory.Server{}, fmt.Errorf("the record of server %s cannot be read: %w", s.ID, err)
		}
	}
	return s, nil
}

func (r *serverRow) ecc() *bool {
	if !r.memoryECC.Valid {
		return nil
	}
	ecc := r.memoryECC.Bool
	return &ecc
}

func (r *serverRow) price() *inventory.Price {
	if r.priceCurrency.text == "" {
		return nil
	}
	return &inventory.Price{Amount: inventory.Amount(r.priceAmount), Currency: r.priceCurrency.text}
}

// optionalText is a text column whose NULL is the empty text, the domain's word for unknown.
type optionalText string

// ScanBytes implements pgtype.BytesScanner.
func (t *optionalText) ScanBytes(v []byte) error {
	*t = optionalText(v)
	return nil
}

// textPool keeps each distinct text of one query once.
type textPool map[string]string

func (p *textPool) keep(v []byte) string {
	if text, ok := (*p)[string(v)]; ok {
		return text
	}
	if *p == nil {
		*p = textPool{}
	}
	text := string(v)
	(*p)[text] = text
	return text
}

// pooledText is an optionalText that repeats from row to row.
type pooledText struct {
	pool *textPool
	text string
}

// ScanBytes implements pgtype.BytesScanner.
func (t *pooledText) ScanBytes(v []byte) error {
	if t.text != string(v) { // neighbours are often equal
		t.text = t.pool.keep(v)
	}
	return nil
}

// pooledPart is a JSON column that repeats from row to row; NULL is nil.
type pooledPart[T any] struct {
	pool  map[string]T
	value T
	err   error
}

// ScanBytes implements pgtype.BytesScanner.
func (p *pooledPart[T]) ScanBytes(v []byte) error {
	var known bool
	p.err = nil
	if p.value, known = p.pool[string(v)]; known || v == nil {
		return nil
	}
	if p.err = json.Unmarshal(v, &p.value); p.err == nil {
		if p.pool == nil {
			p.pool = map[string]T{}
		}
		p.pool[string(v)] = p.value
	}
	return nil
}
