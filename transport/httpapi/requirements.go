package httpapi

import (
	"cmp"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/transport/httpapi/wire"
)

// requirements turns what was asked over the wire, and has been checked against the contract, into the domain's form.
// Nulls, empty lists and zeros become nothing, so that requests that mean the same have the same fingerprint.
func requirements(w wire.Requirements) allocation.Requirements {
	return allocation.Requirements{
		Sites: names(w.Sites), ExcludeSites: names(w.ExcludeSites), Racks: names(w.Racks),
		Manufacturers: names(w.Manufacturers), Models: names(w.Models),
		Servers: each(w.Servers, func(id wire.ServerID) inventory.ServerID { return inventory.ServerID(id) }),
		CPU: allocation.CPURequirements{
			Vendors: names(w.CPU.Vendors), Models: names(w.CPU.Models), SocketsMin: w.CPU.SocketsMin, CoresMin: w.CPU.CoresMin,
			ThreadsMin: w.CPU.ThreadsMin, BenchmarkMin: benchmarkMin(w.CPU.BenchmarkMin),
		},
		Memory:  allocation.MemoryRequirements{MiBMin: w.Memory.MibMin, ECC: w.Memory.Ecc, Types: names(w.Memory.Types)},
		Drives:  each(w.Drives, driveGroup),
		RAID:    inventory.RAID(w.Raid),
		GPU:     gpuRequirements(w.Gpu),
		Network: allocation.NetworkRequirements{UplinkMbpsMin: w.Network.UplinkMbpsMin},
		Price:   priceLimit(w.Price),
		TagsAll: names(w.TagsAll), TagsNone: names(w.TagsNone), Attributes: w.Attributes,
	}
}

func names(list []wire.Name) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// benchmarkMin: a benchmark that is asked for has a name.
func benchmarkMin(w wire.BenchmarkMin) *allocation.BenchmarkMin {
	if w.Name == "" {
		return nil
	}
	return &allocation.BenchmarkMin{Name: w.Name, Score: w.Score}
}

func driveGroup(w wire.DriveRequirement) allocation.DriveGroup {
	return allocation.DriveGroup{
		CountMin: cmp.Or(w.CountMin, 1), NominalGBMin: w.NominalGbMin, Medium: inventory.Medium(w.Medium), Interface: w.Interface,
	}
}

func gpuRequirements(w *wire.GPURequirements) *allocation.GPURequirements {
	if w == nil {
		return nil
	}
	return &allocation.GPURequirements{CountMin: cmp.Or(w.CountMin, 1), Models: names(w.Models)}
}

// priceLimit: a price that is asked for has a currency. The contract's pattern is that of ParseAmount.
func priceLimit(w wire.PriceLimit) *allocation.PriceLimit {
	if w.Currency == "" {
		return nil
	}
	limit := &allocation.PriceLimit{Currency: w.Currency}
	if amount, err := inventory.ParseAmount(w.MonthlyMax); err == nil {
		limit.MonthlyMax = &amount
	}
	return limit
}
