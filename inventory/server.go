package inventory

import (
	"time"
)

// ServerID identifies one server: "srv_" and the 32 hexadecimal digits of a UUIDv7, so ids sort by time of creation.
// An id that is not of this form belongs to no server.
type ServerID string

// Server is one physical machine. Its identity towards the outside is (organization, Source, ExternalID).
//
// Unknown is not none: a nil pointer, a nil slice, an empty text or a zero number means that nobody recorded the
// attribute, and an unknown attribute never satisfies a requirement. A machine that is known to have no drives or no
// GPUs has an empty, non-nil slice.
type Server struct {
	ID         ServerID
	Source     string // the system that knows the machine: "api", "hetzner", "netbox"
	ExternalID string // its id there
	Name       string
	Serial     string

	Site     string // never unknown
	Rack     string
	Position string // unit in the rack, as the data centre writes it ("12", "12.5")

	Manufacturer string
	Model        string

	CPU        CPU
	Memory     Memory
	Drives     []Drive
	RAID       RAID
	GPUs       []GPU
	UplinkMbps int64

	Price      *Price
	Tags       []string
	Attributes map[string]string

	State       State
	StateReason string
	Version     int64 // grows by one with every change of the record
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// CPU is the processors of a server, all sockets together.
type CPU struct {
	Vendor     string
	Model      string
	Sockets    int64
	Cores      int64            // physical cores over all sockets
	Threads    int64            // hardware threads over all sockets
	Benchmarks map[string]int64 // score by name of the benchmark
}

// Memory is the main memory of a server.
type Memory struct {
	MiB  int64
	ECC  *bool
	Type string // "DDR4", "DDR5"
}

// Drive is a group of equal drives. GB are nominal decimal gigabytes as printed on the label: 1 GB is 10^9 bytes.
type Drive struct {
	Count     int64  `json:"count"`
	NominalGB int64  `json:"nominal_gb"`
	Medium    Medium `json:"medium,omitempty"`
	Interface string `json:"interface,omitempty"` // "nvme", "sata", "sas"
}

// Medium is what a drive stores on.
type Medium string

// The media that requirements can ask for.
const (
	MediumSSD Medium = "ssd"
	MediumHDD Medium = "hdd"
)

// GPU is a group of equal graphics processors.
type GPU struct {
	Model string `json:"model,omitempty"`
	Count int64  `json:"count"`
}

// RAID is the kind of redundancy a server offers to its drives.
type RAID string

// The kinds of RAID; the empty text is unknown.
const (
	RAIDNone     RAID = "none"
	RAIDSoftware RAID = "software"
	RAIDHardware RAID = "hardware"
)

// Price is what a server costs each month.
type Price struct {
	Amount   Amount `json:"amount"`
	Currency string `json:"currency"` // ISO 4217, three capitals
}

// The weights of Size: how many MiB of memory one core, one nominal GB of drive and one GPU are worth. They only have
// to put small machines before large ones, the same way everywhere and for ever; they are not a price.
const (
	mibPerCore = 4096
	mibPerGB   = 8
	mibPerGPU  = 262144
)

// Size is the one static number by which servers that fit are ranked, smallest first, so that a small order does not
// use up a large machine. Unknown parts count nothing. The database computes the same number in the generated column
// servers.size; a test holds the two equal.
func (s *Server) Size() int64 {
	size := mibPerCore*s.CPU.Cores + s.Memory.MiB
	for _, d := range s.Drives {
		size += mibPerGB * d.Count * d.NominalGB
	}
	for _, g := range s.GPUs {
		size += mibPerGPU * g.Count
	}
	return size
}
