package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"allocator/inventory"
)

// serverRecord is a server as JSON, its names those of the columns of servers. It is what statements are given to write
// (unknown is left out or null), and what freeze_server freezes on a reservation or a binding, which has columns more.
// Frozen servers are kept for months and read by later versions of this program: names never change their meaning, and a
// shape that cannot be read as this one gets the next number.
type serverRecord struct {
	V             int               `json:"v"`
	ID            string            `json:"id"`
	Source        string            `json:"source"`
	ExternalID    string            `json:"external_id"`
	Name          string            `json:"name,omitempty"`
	Serial        string            `json:"serial,omitempty"`
	Site          string            `json:"site"`
	Rack          string            `json:"rack,omitempty"`
	Position      string            `json:"position,omitempty"`
	Manufacturer  string            `json:"manufacturer,omitempty"`
	Model         string            `json:"model,omitempty"`
	CPUVendor     string            `json:"cpu_vendor,omitempty"`
	CPUModel      string            `json:"cpu_model,omitempty"`
	CPUSockets    int64             `json:"cpu_sockets,omitempty"`
	CPUCores      int64             `json:"cpu_cores,omitempty"`
	CPUThreads    int64             `json:"cpu_threads,omitempty"`
	CPUBenchmarks map[string]int64  `json:"cpu_benchmarks"`
	MemoryMiB     int64             `json:"memory_mib,omitempty"`
	MemoryECC     *bool             `json:"memory_ecc,omitempty"`
	MemoryType    string            `json:"memory_type,omitempty"`
	Drives        []inventory.Drive `json:"drives"` // null: unknown; []: none
	RAID          string            `json:"raid,omitempty"`
	GPUs          []inventory.GPU   `json:"gpus"` // null: unknown; []: none
	UplinkMbps    int64             `json:"uplink_mbps,omitempty"`
	PriceAmount   json.Number       `json:"price_amount,omitempty"`
	PriceCurrency string            `json:"price_currency,omitempty"`
	Tags          []string          `json:"tags"`
	Attributes    map[string]string `json:"attributes"`
	State         string            `json:"state"`
	StateReason   string            `json:"state_reason,omitempty"`

	// Only of frozen servers: elsewhere the database gives them.
	Version   int64     `json:"version,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

// recordVersion is the shape that freeze_server writes.
const recordVersion = 1

// errRecordVersion says that a frozen server is not of a shape this version knows.
var errRecordVersion = errors.New("a frozen server is of a shape that this version of the program does not know: run the version that wrote it, or a newer one")

// recordOf is the record by which a server is written under the given id.
func recordOf(id uuid.UUID, s *inventory.Server) serverRecord {
	r := serverRecord{
		V: recordVersion, ID: id.String(), Source: s.Source, ExternalID: s.ExternalID, Name: s.Name, Serial: s.Serial,
		Site: s.Site, Rack: s.Rack, Position: s.Position, Manufacturer: s.Manufacturer, Model: s.Model,
		CPUVendor: s.CPU.Vendor, CPUModel: s.CPU.Model, CPUSockets: s.CPU.Sockets, CPUCores: s.CPU.Cores,
		CPUThreads: s.CPU.Threads, CPUBenchmarks: s.CPU.Benchmarks,
		MemoryMiB: s.Memory.MiB, MemoryECC: s.Memory.ECC, MemoryType: s.Memory.Type,
		Drives: s.Drives, RAID: string(s.RAID), GPUs: s.GPUs, UplinkMbps: s.UplinkMbps,
		Tags: s.Tags, Attributes: s.Attributes, State: string(s.State), StateReason: s.StateReason,
	}
	if s.Price != nil {
		r.PriceAmount, r.PriceCurrency = json.Number(s.Price.Amount.String()), s.Price.Currency
	}
	return r
}

// decodeServer reads a frozen server: the same as serverRow would have read at that moment.
func decodeServer(frozen []byte) (inventory.Server, error) {
	var r serverRecord
	if err := json.Unmarshal(frozen, &r); err != nil {
		return inventory.Server{}, fmt.Errorf("a frozen server cannot be read: %w", err)
	}
	if r.V != recordVersion {
		return inventory.Server{}, fmt.Errorf("%w (shape %d)", errRecordVersion, r.V)
	}
	price, err := r.price()
	if err != nil {
		return inventory.Server{}, fmt.Errorf("the price of a frozen server cannot be read: %w", err)
	}
	return inventory.Server{
		ID: r.id(), Source: r.Source, ExternalID: r.ExternalID, Name: r.Name, Serial: r.Serial,
		Site: r.Site, Rack: r.Rack, Position: r.Position, Manufacturer: r.Manufacturer, Model: r.Model,
		CPU: inventory.CPU{
			Vendor: r.CPUVendor, Model: r.CPUModel, Sockets: r.CPUSockets, Cores: r.CPUCores, Threads: r.CPUThreads,
			Benchmarks: filledMap(r.CPUBenchmarks),
		},
		Memory: inventory.Memory{MiB: r.MemoryMiB, ECC: r.MemoryECC, Type: r.MemoryType},
		Drives: r.Drives, RAID: inventory.RAID(r.RAID), GPUs: r.GPUs, UplinkMbps: r.UplinkMbps,
		Price: price, Tags: filledList(r.Tags), Attributes: filledMap(r.Attributes),
		State: inventory.State(r.State), StateReason: r.StateReason, Version: r.Version,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}, nil
}

// id writes the id as the rest of the program does; what is none, in a row of somebody's own making, stays as it is.
func (r *serverRecord) id() inventory.ServerID {
	id, err := uuid.Parse(r.ID)
	if err != nil {
		return inventory.ServerID(r.ID)
	}
	return inventory.ServerID(formatID(serverIDPrefix, id))
}

// price is nil when it was unknown.
func (r *serverRecord) price() (price *inventory.Price, err error) {
	if r.PriceCurrency != "" {
		price = &inventory.Price{Currency: r.PriceCurrency}
		price.Amount, err = inventory.ParseAmount(r.PriceAmount.String())
	}
	return price, err
}

// filledMap and filledList make no difference between nothing and an empty map or list, as serverRow does not.
func filledMap[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

func filledList[V any](list []V) []V {
	if len(list) == 0 {
		return nil
	}
	return list
}
