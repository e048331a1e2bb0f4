package allocation

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"allocator/inventory"
)

// Values come from small pools, so that an attribute that is right, one that is wrong and one that is unknown are all
// common, and so are servers that are equal in everything that ranks them.

var (
	noneOrSome = []string{"", "a", "b", "c"}
	currencies = []string{"EUR", "USD"}
	flags      = []*bool{nil, new(false), new(true)}
)

func pick[T any](rt *rapid.T, label string, pool ...T) T {
	return rapid.SampledFrom(pool).Draw(rt, label)
}

// drawFacts draws one server and what holds it.
func drawFacts(rt *rapid.T, n int) Facts {
	f := Facts{Server: inventory.Server{
		ID: inventory.ServerID(fmt.Sprintf("srv_%032x", n)), Name: fmt.Sprintf("m-%d", n), Source: "test", ExternalID: fmt.Sprint(n),
		Site: pick(rt, "site", "a", "b"), Rack: pick(rt, "rack", noneOrSome...), Position: pick(rt, "position", noneOrSome...), Manufacturer: pick(rt, "manufacturer", noneOrSome...),
		CPU:        inventory.CPU{Cores: pick[int64](rt, "cores", 0, 8, 16), Benchmarks: pick(rt, "benchmarks", nil, map[string]int64{"a": 5})},
		Memory:     inventory.Memory{MiB: pick[int64](rt, "mib", 0, 1024, 2048), ECC: pick(rt, "ecc", flags...)},
		Drives:     drawDrives(rt),
		Tags:       pick(rt, "tags", nil, []string{"a"}, []string{"a", "b"}),
		Attributes: pick(rt, "attributes", nil, map[string]string{"a": "1"}, map[string]string{"a": "2", "b": "1"}),
		State:      pick(rt, "state", append(inventory.States(), inventory.StateReady, inventory.StateReady, inventory.StateReady)...),
	}}
	if rapid.Bool().Draw(rt, "priced") {
		f.Server.Price = &inventory.Price{Amount: pick[inventory.Amount](rt, "amount", 0, 10_0000, 20_0000), Currency: pick(rt, "currency", currencies...)}
	}
	switch pick(rt, "holder", "", "", "", "held", "bound") {
	case "held":
		f.Held, f.HeldUntil = true, rapid.Int64Range(1, 1000).Draw(rt, "until")
	case "bound":
		f.Bound = true
	}
	return f
}

func drawSnapshot(rt *rapid.T) Snapshot {
	facts := make([]Facts, rapid.IntRange(0, 12).Draw(rt, "servers"))
	for i := range facts {
		facts[i] = drawFacts(rt, i)
	}
	return Snapshot{Facts: facts}
}

// drawDrives is nil for unknown and empty for none.
func drawDrives(rt *rapid.T) []inventory.Drive {
	if rapid.IntRange(0, 4).Draw(rt, "drives known") == 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) inventory.Drive {
		return inventory.Drive{
			Count: rapid.Int64Range(1, 3).Draw(rt, "count"), NominalGB: pick[int64](rt, "gb", 480, 960, 8000),
			Medium: pick(rt, "medium", "", inventory.MediumSSD, inventory.MediumHDD), Interface: pick(rt, "interface", "", "nvme", "sata"),
		}
	}), 0, 4).Draw(rt, "drives")
}

func drawGroups(rt *rapid.T) []DriveGroup {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) DriveGroup {
		return DriveGroup{
			CountMin: rapid.Int64Range(1, 3).Draw(rt, "count"), NominalGBMin: pick[int64](rt, "gb", 0, 480, 960, 8000),
			Medium: pick(rt, "medium", "", inventory.MediumSSD, inventory.MediumHDD), Interface: pick(rt, "interface", "", "nvme", "sata"),
		}
	}), 0, 3).Draw(rt, "groups")
}

// fields draws each field of Requirements, empty values included; TestEveryFieldIsDrawn compares it with the type.
var fields = map[string]func(*rapid.T, *Requirements){
	"sites":             func(rt *rapid.T, r *Requirements) { r.Sites = drawWords(rt) },
	"exclude_sites":     func(rt *rapid.T, r *Requirements) { r.ExcludeSites = drawWords(rt) },
	"racks":             func(rt *rapid.T, r *Requirements) { r.Racks = drawWords(rt) },
	"manufacturers":     func(rt *rapid.T, r *Requirements) { r.Manufacturers = drawWords(rt) },
	"models":            func(rt *rapid.T, r *Requirements) { r.Models = drawWords(rt) },
	"servers":           func(rt *rapid.T, r *Requirements) { r.Servers = drawServers(rt) },
	"cpu.vendors":       func(rt *rapid.T, r *Requirements) { r.CPU.Vendors = drawWords(rt) },
	"cpu.models":        func(rt *rapid.T, r *Requirements) { r.CPU.Models = drawWords(rt) },
	"cpu.sockets_min":   func(rt *rapid.T, r *Requirements) { r.CPU.SocketsMin = pick[int64](rt, "sockets", 0, 1, 2) },
	"cpu.cores_min":     func(rt *rapid.T, r *Requirements) { r.CPU.CoresMin = pick[int64](rt, "cores", 0, 8, 16, 32) },
	"cpu.threads_min":   func(rt *rapid.T, r *Requirements) { r.CPU.ThreadsMin = pick[int64](rt, "threads", 0, 1, 2) },
	"cpu.benchmark_min": drawBenchmark,
	"memory.mib_min":    func(rt *rapid.T, r *Requirements) { r.Memory.MiBMin = pick[int64](rt, "mib", 0, 1024, 2048, 4096) },
	"memory.ecc":        func(rt *rapid.T, r *Requirements) { r.Memory.ECC = pick(rt, "ecc", flags...) },
	"memory.types":      func(rt *rapid.T, r *Requirements) { r.Memory.Types = drawWords(rt) },
	"drives":            func(rt *rapid.T, r *Requirements) { r.Drives = drawGroups(rt) },
	"raid": func(rt *rapid.T, r *Requirements) {
		r.RAID = pick(rt, "raid", "", inventory.RAIDNone, inventory.RAIDHardware)
	},
	"gpu":                     drawGPU,
	"network.uplink_mbps_min": func(rt *rapid.T, r *Requirements) { r.Network.UplinkMbpsMin = pick[int64](rt, "uplink", 0, 1000) },
	"price":                   drawPrice,
	"tags_all":                func(rt *rapid.T, r *Requirements) { r.TagsAll = drawWords(rt) },
	"tags_none":               func(rt *rapid.T, r *Requirements) { r.TagsNone = drawWords(rt) },
	"attributes": func(rt *rapid.T, r *Requirements) {
		r.Attributes = pick(rt, "attributes", nil, map[string]string{}, map[string]string{"a": "1"}, map[string]string{"a": "1", "b": "1"})
	},
}

func drawWords(rt *rapid.T) []string {
	return pick(rt, "words", nil, []string{}, []string{"a"}, []string{"a", "b"}, []string{"b", "a"}, []string{"z"})
}

func drawServers(rt *rapid.T) []inventory.ServerID {
	return pick(rt, "servers", nil, []inventory.ServerID{}, []inventory.ServerID{"srv_00000000000000000000000000000001", "srv_of_nobody"})
}

func drawBenchmark(rt *rapid.T, r *Requirements) {
	r.CPU.BenchmarkMin = pick(rt, "benchmark", nil, &BenchmarkMin{"a", 5}, &BenchmarkMin{"a", 6}, &BenchmarkMin{"b", 5})
}

func drawGPU(rt *rapid.T, r *Requirements) {
	r.GPU = pick(rt, "gpu", nil, &GPURequirements{CountMin: 1}, &GPURequirements{CountMin: 1, Models: []string{}}, &GPURequirements{CountMin: 1, Models: []string{"a"}})
}

func drawPrice(rt *rapid.T, r *Requirements) {
	r.Price = pick(rt, "price", nil, &PriceLimit{Currency: "EUR"}, &PriceLimit{"EUR", new(inventory.Amount(10_0000))}, &PriceLimit{"USD", new(inventory.Amount(0))})
}

// drawRequirements asks for a few things, and now and then for everything.
func drawRequirements(rt *rapid.T) Requirements {
	names := slices.Sorted(maps.Keys(fields))
	if rapid.IntRange(0, 9).Draw(rt, "everything") > 0 {
		names = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(rt, "fields")
	}
	var r Requirements
	for _, name := range names {
		fields[name](rt, &r)
	}
	return r
}
