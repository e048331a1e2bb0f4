package httpapi

import (
	"cmp"
	"errors"
	"strings"

	"allocator/inventory"
	"allocator/transport/httpapi/strictjson"
	"allocator/transport/httpapi/wire"
)

// newServer turns what was sent into the domain's form. What was left out is unknown.
func newServer(b *wire.NewServer) inventory.Server {
	server := inventory.Server{
		Source: cmp.Or(b.Source, "api"), ExternalID: cmp.Or(b.ExternalID, b.Name), Name: b.Name, Serial: b.Serial,
		Site: b.Site, Rack: b.Rack, Position: b.Position, Manufacturer: b.Manufacturer, Model: b.Model,
		CPU: inventory.CPU{
			Vendor: b.CPU.Vendor, Model: b.CPU.Model, Sockets: b.CPU.Sockets, Cores: b.CPU.Cores, Threads: b.CPU.Threads,
			Benchmarks: b.CPU.Benchmarks,
		},
		Memory: inventory.Memory{MiB: b.Memory.Mib, ECC: b.Memory.Ecc, Type: b.Memory.Type},
		Drives: drives(b.Drives), RAID: inventory.RAID(b.Raid), GPUs: gpus(b.Gpus), UplinkMbps: b.UplinkMbps,
		Tags: b.Tags, Attributes: b.Attributes, State: inventory.State(b.State),
	}
	if amount, err := inventory.ParseAmount(b.Price.Amount); err == nil { // no price, no amount
		server.Price = &inventory.Price{Amount: amount, Currency: b.Price.Currency}
	}
	return server
}

func drives(list []wire.Drive) []inventory.Drive {
	if list == nil {
		return nil
	}
	return each(list, func(d wire.Drive) inventory.Drive {
		return inventory.Drive{Count: d.Count, NominalGB: d.NominalGb, Medium: inventory.Medium(d.Medium), Interface: string(d.Interface)}
	})
}

func gpus(list []wire.GPU) []inventory.GPU {
	if list == nil {
		return nil
	}
	return each(list, func(g wire.GPU) inventory.GPU { return inventory.GPU{Count: g.Count, Model: g.Model} })
}

// queryFaults turns the pointers of a filter's faults into the parameters that they are here.
func queryFaults(err error) error {
	var wrong *inventory.InvalidError
	if !errors.As(err, &wrong) {
		return err
	}
	var faults []strictjson.Fault
	for _, f := range wrong.Fields {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
		faults = append(faults, strictjson.Fault{Pointer: "query:" + name, Code: f.Code, Detail: sentence(f.Detail)})
	}
	return refuseFaults(faults)
}
