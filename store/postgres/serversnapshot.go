package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"allocator/inventory"
)

// serverSnapshot is a server as it is frozen on a reservation or a binding. The database's function freeze_server writes
// it, so that it is what stands under the lock; it is kept for months and read by later versions of this program.
// Names never change their meaning, and a shape that cannot be read as this one gets the next number.
type serverSnapshot struct {
	V            int               `json:"v"`
	ID           string            `json:"id"`
	Source       string            `json:"source"`
	ExternalID   string            `json:"external_id"`
	Name         string            `json:"name"`
	Serial       string            `json:"serial"`
	Site         string            `json:"site"`
	Rack         string            `json:"rack"`
	Position     string            `json:"position"`
	Manufacturer string            `json:"manufacturer"`
	Model        string            `json:"model"`
	CPUVendor    string            `json:"cpu_vendor"`
	CPUModel     string            `json:"cpu_model"`
	CPUSockets   int64             `json:"cpu_sockets"`
	CPUCores     int64             `json:"cpu_cores"`
	CPUThreads   int64             `json:"cpu_threads"`
	Benchmarks   map[string]int64  `json:"cpu_benchmarks"`
	MemoryMiB    int64             `json:"memory_mib"`
	MemoryECC    *bool             `json:"memory_ecc"`
	MemoryType   string            `json:"memory_type"`
	Drives       []inventory.Drive `json:"drives"` // left out: unknown
	RAID         string            `json:"raid"`
	GPUs         []inventory.GPU   `json:"gpus"` // left out: unknown
	UplinkMbps   int64             `json:"uplink_mbps"`
	PriceAmount  string            `json:"price_amount"`
	Currency     string            `json:"price_currency"`
	Tags         []string          `json:"tags"`
	Attributes   map[string]string `json:"attributes"`
	State        string            `json:"state"`
	StateReason  string            `json:"state_reason"`
	Version      int64             `json:"version"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
}

// snapshotVersion is the shape that freeze_server writes.
const snapshotVersion = 1

// errSnapshotVersion says that a frozen server is not of a shape this version knows.
var errSnapshotVersion = errors.New("a frozen server is of a shape that this version of the program does not know: run the version that wrote it, or a newer one")

// decodeServer reads a frozen server: the same as serverRow would have read at that moment.
func decodeServer(frozen []byte) (inventory.Server, error) {
	var f serverSnapshot
	if err := json.Unmarshal(frozen, &f); err != nil {
		return inventory.Server{}, fmt.Errorf("a frozen server cannot be read: %w", err)
	}
	if f.V != snapshotVersion {
		return inventory.Server{}, fmt.Errorf("%w (shape %d)", errSnapshotVersion, f.V)
	}
	price, err := f.price()
	if err != nil {
		return inventory.Server{}, fmt.Errorf("the price of a frozen server cannot be read: %w", err)
	}
	return inventory.Server{
		ID: inventory.ServerID(f.ID), Source: f.Source, ExternalID: f.ExternalID, Name: f.Name, Serial: f.Serial,
		Site: f.Site, Rack: f.Rack, Position: f.Position, Manufacturer: f.Manufacturer, Model: f.Model,
		CPU: inventory.CPU{
			Vendor: f.CPUVendor, Model: f.CPUModel, Sockets: f.CPUSockets, Cores: f.CPUCores, Threads: f.CPUThreads,
			Benchmarks: filledMap(f.Benchmarks),
		},
		Memory: inventory.Memory{MiB: f.MemoryMiB, ECC: f.MemoryECC, Type: f.MemoryType},
		Drives: f.Drives, RAID: inventory.RAID(f.RAID), GPUs: f.GPUs, UplinkMbps: f.UplinkMbps,
		Price: price, Tags: filledList(f.Tags), Attributes: filledMap(f.Attributes),
		State: inventory.State(f.State), StateReason: f.StateReason, Version: f.Version,
		CreatedAt: f.CreatedAt.UTC(), UpdatedAt: f.UpdatedAt.UTC(),
	}, nil
}

func (f *serverSnapshot) price() (*inventory.Price, error) {
	if f.Currency == "" {
		return nil, nil
	}
	amount, err := inventory.ParseAmount(f.PriceAmount)
	return &inventory.Price{Amount: amount, Currency: f.Currency}, err
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
