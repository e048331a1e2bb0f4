package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"allocator/inventory"
)

// serverSnapshot is a server as it is frozen on a reservation or a binding. It is kept for months and read by later
// versions of this program, so its shape is its own: names never change their meaning, and a shape that cannot be read
// as this one gets the next number.
type serverSnapshot struct {
	V            int               `json:"v"`
	ID           string            `json:"id"`
	Source       string            `json:"source,omitempty"`
	ExternalID   string            `json:"external_id,omitempty"`
	Name         string            `json:"name,omitempty"`
	Serial       string            `json:"serial,omitempty"`
	Site         string            `json:"site"`
	Rack         string            `json:"rack,omitempty"`
	Position     string            `json:"position,omitempty"`
	Manufacturer string            `json:"manufacturer,omitempty"`
	Model        string            `json:"model,omitempty"`
	CPUVendor    string            `json:"cpu_vendor,omitempty"`
	CPUModel     string            `json:"cpu_model,omitempty"`
	CPUSockets   int64             `json:"cpu_sockets,omitempty"`
	CPUCores     int64             `json:"cpu_cores,omitempty"`
	CPUThreads   int64             `json:"cpu_threads,omitempty"`
	Benchmarks   map[string]int64  `json:"cpu_benchmarks,omitempty"`
	MemoryMiB    int64             `json:"memory_mib,omitempty"`
	MemoryECC    *bool             `json:"memory_ecc,omitempty"`
	MemoryType   string            `json:"memory_type,omitempty"`
	Drives       []inventory.Drive `json:"drives"` // null: unknown
	RAID         string            `json:"raid,omitempty"`
	GPUs         []inventory.GPU   `json:"gpus"` // null: unknown
	UplinkMbps   int64             `json:"uplink_mbps,omitempty"`
	PriceAmount  string            `json:"price_amount,omitempty"`
	Currency     string            `json:"price_currency,omitempty"`
	Tags         []string          `json:"tags,omitempty"`
	Attributes   map[string]string `json:"attributes,omitempty"`
	State        string            `json:"state"`
	StateReason  string            `json:"state_reason,omitempty"`
	Version      int64             `json:"version"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
}

// snapshotVersion is the shape that encodeServer writes.
const snapshotVersion = 1

// errNoSnapshot says that a frozen server is not of a shape this version knows.
var errNoSnapshot = errors.New("a frozen server is of a shape that this version cannot read: run a newer one")

// encodeServer freezes a server.
func encodeServer(s inventory.Server) ([]byte, error) {
	frozen := serverSnapshot{
		V: snapshotVersion, ID: string(s.ID), Source: s.Source, ExternalID: s.ExternalID, Name: s.Name, Serial: s.Serial,
		Site: s.Site, Rack: s.Rack, Position: s.Position, Manufacturer: s.Manufacturer, Model: s.Model,
		CPUVendor: s.CPU.Vendor, CPUModel: s.CPU.Model, CPUSockets: s.CPU.Sockets, CPUCores: s.CPU.Cores,
		CPUThreads: s.CPU.Threads, Benchmarks: s.CPU.Benchmarks,
		MemoryMiB: s.Memory.MiB, MemoryECC: s.Memory.ECC, MemoryType: s.Memory.Type,
		Drives: s.Drives, RAID: string(s.RAID), GPUs: s.GPUs, UplinkMbps: s.UplinkMbps,
		Tags: s.Tags, Attributes: s.Attributes,
		State: string(s.State), StateReason: s.StateReason, Version: s.Version, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	if s.Price != nil {
		frozen.PriceAmount, frozen.Currency = s.Price.Amount.String(), s.Price.Currency
	}
	return json.Marshal(frozen)
}

// decodeServer reads what encodeServer wrote.
func decodeServer(frozen []byte) (inventory.Server, error) {
	var f serverSnapshot
	if err := json.Unmarshal(frozen, &f); err != nil {
		return inventory.Server{}, fmt.Errorf("a frozen server cannot be read: %w", err)
	}
	if f.V != snapshotVersion {
		return inventory.Server{}, fmt.Errorf("%w (shape %d)", errNoSnapshot, f.V)
	}
	s := inventory.Server{
		ID: inventory.ServerID(f.ID), Source: f.Source, ExternalID: f.ExternalID, Name: f.Name, Serial: f.Serial,
		Site: f.Site, Rack: f.Rack, Position: f.Position, Manufacturer: f.Manufacturer, Model: f.Model,
		CPU: inventory.CPU{
			Vendor: f.CPUVendor, Model: f.CPUModel, Sockets: f.CPUSockets, Cores: f.CPUCores, Threads: f.CPUThreads,
			Benchmarks: f.Benchmarks,
		},
		Memory: inventory.Memory{MiB: f.MemoryMiB, ECC: f.MemoryECC, Type: f.MemoryType},
		Drives: f.Drives, RAID: inventory.RAID(f.RAID), GPUs: f.GPUs, UplinkMbps: f.UplinkMbps,
		Tags: f.Tags, Attributes: f.Attributes,
		State: inventory.State(f.State), StateReason: f.StateReason, Version: f.Version,
		CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt,
	}
	price, err := f.price()
	s.Price = price
	return s, err
}

func (f *serverSnapshot) price() (*inventory.Price, error) {
	if f.Currency == "" {
		return nil, nil
	}
	amount, err := inventory.ParseAmount(f.PriceAmount)
	if err != nil {
		return nil, fmt.Errorf("the price of a frozen server cannot be read: %w", err)
	}
	return &inventory.Price{Amount: amount, Currency: f.Currency}, nil
}
