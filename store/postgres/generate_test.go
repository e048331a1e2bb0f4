package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"allocator/allocation"
	"allocator/inventory"
)

// The generated tests draw inventories and requirements from small pools of words and numbers, so that an attribute that
// is right, one that is wrong and one that is unknown are all common. Among the words are those that quoting, escaping
// and case could spoil on their way into a statement; among the numbers are the largest that a record may have.

var (
	words      = []string{"FSN1", "fsn1", `it's "q",{}`, "ü\\<&>漢🖥"}
	orUnknown  = append([]string{""}, words...)
	media      = []inventory.Medium{"", inventory.MediumSSD, inventory.MediumHDD}
	interfaces = []string{"", "nvme", "sata"}
	currencies = []string{"EUR", "USD"}
	amounts    = []inventory.Amount{0, 38_0000, 38_0001, 999_999_999_999_9999}
	maybe      = []*bool{nil, new(false), new(true)}
	gpuModels  = []string{"", "RTX 6000", "it's"}
	labels     = []string{"gold", "a,b {c}", `quo"te`}
)

func pick[T any](rt *rapid.T, label string, pool ...T) T {
	return rapid.SampledFrom(pool).Draw(rt, label)
}

// some draws distinct elements of a pool, in any order.
func some[T comparable](rt *rapid.T, label string, least int, pool ...T) []T {
	list := rapid.SliceOfNDistinct(rapid.SampledFrom(pool), least, len(pool), rapid.ID[T]).Draw(rt, label)
	if len(list) == 0 {
		return nil
	}
	return list
}

// pairs draws a map of a few names.
func pairs[V any](rt *rapid.T, label string, least int, values ...V) map[string]V {
	var m map[string]V
	for _, name := range some(rt, label, least, labels...) {
		if m == nil {
			m = map[string]V{}
		}
		m[name] = pick(rt, name, values...)
	}
	return m
}

// drawnServer is a server with its row's id and what holds it: "", "held" or "bound".
type drawnServer struct {
	inventory.Server

	row    uuid.UUID
	holder string
}

// drawInventory draws servers in the order of their ids.
func drawInventory(rt *rapid.T) []drawnServer {
	list := make([]drawnServer, rapid.IntRange(1, 20).Draw(rt, "servers"))
	for i := range list {
		list[i] = drawServer(rt, i)
	}
	return list
}

func drawServer(rt *rapid.T, n int) drawnServer {
	row := uuid.MustParse(fmt.Sprintf("01900000-0000-7000-8000-%012x", n))
	s := inventory.Server{
		ID: inventory.ServerID(formatID(serverIDPrefix, row)), Source: "test", ExternalID: fmt.Sprint(n), Name: pick(rt, "name", orUnknown...),
		Site: pick(rt, "site", words...), Rack: pick(rt, "rack", orUnknown...),
		Manufacturer: pick(rt, "manufacturer", orUnknown...), Model: pick(rt, "model", orUnknown...),
		CPU: inventory.CPU{
			Vendor: pick(rt, "cpu vendor", orUnknown...), Model: pick(rt, "cpu model", orUnknown...),
			Sockets: pick[int64](rt, "sockets", 0, 1, 2), Cores: pick[int64](rt, "cores", 0, 8, 65_536), Threads: pick[int64](rt, "threads", 0, 16, 65_536),
			Benchmarks: pairs[int64](rt, "benchmarks", 0, 1, 20_000, 1_000_000_000_000),
		},
		Memory: inventory.Memory{MiB: pick[int64](rt, "mib", 0, 65_536, 1<<30), ECC: pick(rt, "ecc", maybe...), Type: pick(rt, "memory type", orUnknown...)},
		Drives: drawDrives(rt), RAID: pick(rt, "raid", "", inventory.RAIDNone, inventory.RAIDSoftware, inventory.RAIDHardware),
		GPUs: drawGPUs(rt), UplinkMbps: pick[int64](rt, "uplink", 0, 1000, 10_000_000),
		Tags: some(rt, "tags", 0, labels...), Attributes: pairs(rt, "attributes", 0, words...),
		State:   pick(rt, "state", append(inventory.States(), inventory.StateReady, inventory.StateReady, inventory.StateReady)...),
		Version: 1,
	}
	if rapid.Bool().Draw(rt, "priced") {
		s.Price = &inventory.Price{Amount: pick(rt, "amount", amounts...), Currency: pick(rt, "currency", currencies...)}
	}
	return drawnServer{Server: s, row: row, holder: pick(rt, "holder", "", "", "", "held", "bound")}
}

// drawDrives is nil for unknown and empty for none.
func drawDrives(rt *rapid.T) []inventory.Drive {
	if rapid.IntRange(0, 4).Draw(rt, "drives known") == 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) inventory.Drive {
		return inventory.Drive{
			Count: pick[int64](rt, "count", 1, 2, 3), NominalGB: pick[int64](rt, "gb", 480, 960, 1_000_000),
			Medium: pick(rt, "medium", media...), Interface: pick(rt, "interface", interfaces...),
		}
	}), 0, 5).Draw(rt, "drives")
}

// drawGroups draws one to three groups of drives, and now and then as many as are allowed.
func drawGroups(rt *rapid.T) []allocation.DriveGroup {
	most := pick(rt, "most groups", 3, 3, 3, allocation.MaxDriveGroups)
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) allocation.DriveGroup {
		return allocation.DriveGroup{
			CountMin: pick[int64](rt, "count", 1, 1, 2, 3), NominalGBMin: pick[int64](rt, "gb", 0, 480, 960, 1_000_000),
			Medium: pick(rt, "medium", media...), Interface: pick(rt, "interface", interfaces...),
		}
	}), 1, most).Draw(rt, "groups")
}

func drawGPUs(rt *rapid.T) []inventory.GPU {
	if rapid.IntRange(0, 4).Draw(rt, "gpus known") == 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) inventory.GPU {
		return inventory.GPU{Count: pick[int64](rt, "count", 1, 2), Model: pick(rt, "model", gpuModels...)}
	}), 0, 3).Draw(rt, "gpus")
}

// asks draws what an order asks for in each field; never nothing.
var asks = map[string]func(*rapid.T, *allocation.Requirements){
	"sites":         func(rt *rapid.T, r *allocation.Requirements) { r.Sites = some(rt, "sites", 1, words...) },
	"exclude_sites": func(rt *rapid.T, r *allocation.Requirements) { r.ExcludeSites = some(rt, "exclude sites", 1, words...) },
	"racks":         func(rt *rapid.T, r *allocation.Requirements) { r.Racks = some(rt, "racks", 1, words...) },
	"manufacturers": func(rt *rapid.T, r *allocation.Requirements) {
		r.Manufacturers = some(rt, "manufacturers", 1, words...)
	},
	"models":      func(rt *rapid.T, r *allocation.Requirements) { r.Models = some(rt, "models", 1, words...) },
	"servers":     askServers,
	"cpu.vendors": func(rt *rapid.T, r *allocation.Requirements) { r.CPU.Vendors = some(rt, "cpu vendors", 1, words...) },
	"cpu.models":  func(rt *rapid.T, r *allocation.Requirements) { r.CPU.Models = some(rt, "cpu models", 1, words...) },
	"cpu.sockets_min": func(rt *rapid.T, r *allocation.Requirements) {
		r.CPU.SocketsMin = pick[int64](rt, "sockets", 1, 2)
	},
	"cpu.cores_min": func(rt *rapid.T, r *allocation.Requirements) {
		r.CPU.CoresMin = pick[int64](rt, "cores", 8, 9, 65_536)
	},
	"cpu.threads_min": func(rt *rapid.T, r *allocation.Requirements) {
		r.CPU.ThreadsMin = pick[int64](rt, "threads", 16, 17, 65_536)
	},
	"cpu.benchmark_min": func(rt *rapid.T, r *allocation.Requirements) {
		r.CPU.BenchmarkMin = &allocation.BenchmarkMin{
			Name: pick(rt, "benchmark", append([]string{"nobody's"}, labels...)...), Score: pick[int64](rt, "score", 1, 20_001, 1_000_000_000_000),
		}
	},
	"memory.mib_min": func(rt *rapid.T, r *allocation.Requirements) {
		r.Memory.MiBMin = pick[int64](rt, "mib", 65_536, 65_537, 1<<30)
	},
	"memory.ecc":   func(rt *rapid.T, r *allocation.Requirements) { r.Memory.ECC = pick(rt, "ecc", maybe[1:]...) },
	"memory.types": func(rt *rapid.T, r *allocation.Requirements) { r.Memory.Types = some(rt, "memory types", 1, words...) },
	"drives":       func(rt *rapid.T, r *allocation.Requirements) { r.Drives = drawGroups(rt) },
	"raid": func(rt *rapid.T, r *allocation.Requirements) {
		r.RAID = pick(rt, "raid", inventory.RAIDNone, inventory.RAIDSoftware, inventory.RAIDHardware)
	},
	"gpu": func(rt *rapid.T, r *allocation.Requirements) {
		r.GPU = &allocation.GPURequirements{CountMin: pick[int64](rt, "gpus", 1, 2, 3), Models: some(rt, "gpu models", 0, append([]string{"none"}, gpuModels[1:]...)...)}
	},
	"network.uplink_mbps_min": func(rt *rapid.T, r *allocation.Requirements) {
		r.Network.UplinkMbpsMin = pick[int64](rt, "uplink", 1000, 1001, 10_000_000)
	},
	"price": func(rt *rapid.T, r *allocation.Requirements) {
		r.Price = &allocation.PriceLimit{Currency: pick(rt, "currency", currencies...)}
		if rapid.Bool().Draw(rt, "limited") {
			r.Price.MonthlyMax = new(pick(rt, "limit", amounts...))
		}
	},
	"tags_all":  func(rt *rapid.T, r *allocation.Requirements) { r.TagsAll = some(rt, "tags all", 1, labels...) },
	"tags_none": func(rt *rapid.T, r *allocation.Requirements) { r.TagsNone = some(rt, "tags none", 1, labels...) },
	"attributes": func(rt *rapid.T, r *allocation.Requirements) {
		r.Attributes = pairs(rt, "attributes", 1, words...)
	},
}

// askServers names a few servers of the inventory, one that is not in it, and texts that are no ids.
func askServers(rt *rapid.T, r *allocation.Requirements) {
	var named []inventory.ServerID
	for _, n := range some(rt, "servers", 1, 0, 1, 2, 3, 999) {
		named = append(named, inventory.ServerID(formatID(serverIDPrefix, uuid.MustParse(fmt.Sprintf("01900000-0000-7000-8000-%012x", n)))))
	}
	named = append(named, pick(rt, "no id", "", "srv_", inventory.ServerID(strings.ToUpper(string(named[0])))))
	r.Servers = named
}

// drawRequirements asks for nothing, for a few things or for everything.
func drawRequirements(rt *rapid.T) *allocation.Requirements {
	names := slices.Sorted(maps.Keys(asks))
	if rapid.IntRange(0, 9).Draw(rt, "everything") > 0 {
		names = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 6, rapid.ID[string]).Draw(rt, "asked")
	}
	r := &allocation.Requirements{}
	for _, name := range names {
		asks[name](rt, r)
	}
	return r
}
