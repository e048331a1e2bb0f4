package httpapi

import (
	"time"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/transport/httpapi/wire"
)

func viewActor(a *identity.Actor) wire.Actor {
	if a == nil {
		return wire.Actor{}
	}
	return wire.Actor{Kind: string(a.Kind), ID: a.ID}
}

func viewTime(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}

// each turns a list into what the wire has for it; never nil, since a list is never null.
func each[From, To any](list []From, view func(From) To) []To {
	out := make([]To, len(list))
	for i := range list {
		out[i] = view(list[i])
	}
	return out
}

func viewCounts(counts []allocation.ReasonCount) []wire.ReasonCount {
	return each(counts, func(c allocation.ReasonCount) wire.ReasonCount {
		return wire.ReasonCount{
			Code: wire.ReasonCode(c.Code), Requirement: c.Requirement, Servers: c.Servers, Text: c.Text, Remedy: c.Remedy,
		}
	})
}

func viewNearest(n *allocation.Nearest) wire.Nearest {
	if n == nil {
		return wire.Nearest{}
	}
	return wire.Nearest{Requirement: n.Requirement, Servers: n.Servers, Text: n.Text}
}

func viewWalked(walked []allocation.Walked, underEdit []inventory.ServerID) []wire.WalkedCandidate {
	return each(walked, func(w allocation.Walked) wire.WalkedCandidate {
		return wire.WalkedCandidate{
			ServerID: string(w.Server), Name: w.Name, Rank: w.Rank, Outcome: wire.ReasonCode(w.Outcome), Notes: notes(w.Server, underEdit),
		}
	})
}

// viewChoice shows why a server was chosen; which others were passed over is for support.
func viewChoice(c *allocation.Choice, full bool) wire.Choice {
	if c == nil {
		return wire.Choice{}
	}
	view := wire.Choice{Code: wire.ReasonCode(c.Code), Text: c.Text, Rank: c.Rank, Servers: c.Servers, Eligible: c.Eligible}
	if full && len(c.PassedOver) > 0 {
		view.PassedOver = viewWalked(c.PassedOver, nil)
	}
	return view
}

// viewReserved shows a server as an order sees it. The parts that are unknown are left out.
func viewReserved(s *inventory.Server) wire.ReservedServer {
	return wire.ReservedServer{
		ID: string(s.ID), Name: s.Name, Site: s.Site, Rack: s.Rack, Position: s.Position,
		Manufacturer: s.Manufacturer, Model: s.Model, CPU: viewCPU(s.CPU), Memory: viewMemory(s.Memory),
		Drives: viewDrives(s.Drives), Raid: wire.RAID(s.RAID), Gpus: viewGPUs(s.GPUs), UplinkMbps: s.UplinkMbps,
		Price: viewPrice(s.Price),
	}
}

// viewServer shows a server as it is recorded.
func viewServer(s *inventory.Server) wire.Server {
	view := wire.Server{
		ID: string(s.ID), Name: s.Name, Site: s.Site, Rack: s.Rack, Position: s.Position,
		Manufacturer: s.Manufacturer, Model: s.Model, CPU: viewCPU(s.CPU), Memory: viewMemory(s.Memory),
		Drives: viewDrives(s.Drives), Raid: wire.RAID(s.RAID), Gpus: viewGPUs(s.GPUs), UplinkMbps: s.UplinkMbps,
		Price: viewPrice(s.Price), Source: s.Source, ExternalID: s.ExternalID, Serial: s.Serial,
		Tags: s.Tags, Attributes: s.Attributes, State: wire.ServerState(s.State), StateReason: s.StateReason,
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
	if view.Tags == nil {
		view.Tags = []string{}
	}
	if view.Attributes == nil {
		view.Attributes = map[string]string{}
	}
	return view
}

func viewCPU(c inventory.CPU) wire.CPU {
	view := wire.CPU{Vendor: c.Vendor, Model: c.Model, Sockets: c.Sockets, Cores: c.Cores, Threads: c.Threads}
	if len(c.Benchmarks) > 0 {
		view.Benchmarks = c.Benchmarks
	}
	return view
}

func viewMemory(m inventory.Memory) wire.Memory {
	return wire.Memory{Mib: m.MiB, Ecc: m.ECC, Type: m.Type}
}

// viewDrives keeps the difference between unknown, which is left out, and none, which is an empty list.
func viewDrives(drives []inventory.Drive) []wire.Drive {
	if drives == nil {
		return nil
	}
	return each(drives, func(d inventory.Drive) wire.Drive {
		return wire.Drive{
			Count: d.Count, NominalGb: d.NominalGB, Medium: wire.Medium(d.Medium), Interface: wire.DriveInterface(d.Interface),
		}
	})
}

// viewGPUs keeps the difference between unknown and none, too.
func viewGPUs(gpus []inventory.GPU) []wire.GPU {
	if gpus == nil {
		return nil
	}
	return each(gpus, func(g inventory.GPU) wire.GPU { return wire.GPU{Model: g.Model, Count: g.Count} })
}

func viewPrice(p *inventory.Price) wire.Price {
	if p == nil {
		return wire.Price{}
	}
	return wire.Price{Amount: p.Amount.String(), Currency: p.Currency}
}
