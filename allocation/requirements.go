package allocation

import (
	"allocator/inventory"
)

// Requirements is what an order asks for. Every field is optional, a zero field asks for nothing, and all that is asked
// must hold. Texts are compared exactly.
type Requirements struct {
	Sites         []string             `json:"sites,omitempty"`
	ExcludeSites  []string             `json:"exclude_sites,omitempty"`
	Racks         []string             `json:"racks,omitempty"`
	Manufacturers []string             `json:"manufacturers,omitempty"`
	Models        []string             `json:"models,omitempty"`
	Servers       []inventory.ServerID `json:"servers,omitempty"`
	CPU           CPURequirements      `json:"cpu,omitzero"`
	Memory        MemoryRequirements   `json:"memory,omitzero"`
	Drives        []DriveGroup         `json:"drives,omitempty"` // matched to distinct drives
	RAID          inventory.RAID       `json:"raid,omitempty"`
	GPU           *GPURequirements     `json:"gpu,omitempty"`
	Network       NetworkRequirements  `json:"network,omitzero"`
	Price         *PriceLimit          `json:"price,omitempty"`
	TagsAll       []string             `json:"tags_all,omitempty"`
	TagsNone      []string             `json:"tags_none,omitempty"`
	Attributes    map[string]string    `json:"attributes,omitempty"`
}

// CPURequirements asks for processors; counts are over all sockets.
type CPURequirements struct {
	Vendors      []string      `json:"vendors,omitempty"`
	Models       []string      `json:"models,omitempty"`
	SocketsMin   int64         `json:"sockets_min,omitempty"`
	CoresMin     int64         `json:"cores_min,omitempty"`
	ThreadsMin   int64         `json:"threads_min,omitempty"`
	BenchmarkMin *BenchmarkMin `json:"benchmark_min,omitempty"`
}

// IsZero tells whether nothing is asked; an empty list asks for nothing, as a missing one does.
func (c CPURequirements) IsZero() bool {
	return len(c.Vendors)+len(c.Models) == 0 && c.SocketsMin|c.CoresMin|c.ThreadsMin == 0 && c.BenchmarkMin == nil
}

// BenchmarkMin asks for at least Score in the benchmark called Name.
type BenchmarkMin struct {
	Name  string `json:"name"`
	Score int64  `json:"score"`
}

// MemoryRequirements asks for memory. ECC nil asks nothing; false asks for memory without error correction.
type MemoryRequirements struct {
	MiBMin int64    `json:"mib_min,omitempty"`
	ECC    *bool    `json:"ecc,omitempty"`
	Types  []string `json:"types,omitempty"`
}

// IsZero tells whether nothing is asked; an empty list asks for nothing, as a missing one does.
func (m MemoryRequirements) IsZero() bool { return m.MiBMin == 0 && m.ECC == nil && len(m.Types) == 0 }

// DriveGroup asks for CountMin drives of at least NominalGBMin decimal gigabytes each.
type DriveGroup struct {
	CountMin     int64            `json:"count_min"`
	NominalGBMin int64            `json:"nominal_gb_min,omitempty"`
	Medium       inventory.Medium `json:"medium,omitempty"`
	Interface    string           `json:"interface,omitempty"`
}

// GPURequirements asks for CountMin GPUs of one of the Models; no models means any.
type GPURequirements struct {
	CountMin int64    `json:"count_min"`
	Models   []string `json:"models,omitempty"`
}

// NetworkRequirements asks for an uplink.
type NetworkRequirements struct {
	UplinkMbpsMin int64 `json:"uplink_mbps_min,omitempty"`
}

// PriceLimit asks for a monthly price in Currency, of at most MonthlyMax if that is given.
type PriceLimit struct {
	Currency   string            `json:"currency"`
	MonthlyMax *inventory.Amount `json:"monthly_max,omitempty"`
}

// MaxDriveGroups bounds the drive groups of one request: matching them looks at every subset.
const MaxDriveGroups = 8
