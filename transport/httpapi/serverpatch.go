package httpapi

import (
	"context"
	"strconv"

	"allocator/inventory"
	"allocator/transport/httpapi/strictjson"
	"allocator/transport/httpapi/wire"
)

// UpdateServer implements wire.StrictServerInterface. The patch is read from the JSON itself, since a decoded struct no
// longer tells null (make it unknown) from a field that was left out (leave it).
func (h *handlers) UpdateServer(
	ctx context.Context, r wire.UpdateServerRequestObject,
) (wire.UpdateServerResponseObject, error) {
	patch := serverPatch(callOf(ctx).body)
	by := editedBy(callerOf(ctx), r.Params.LeaseHolder)
	s, err := h.Servers.Update(ctx, by, inventory.ServerID(r.ServerID), patch, version(r.Params.IfMatch))
	if err != nil {
		return nil, err
	}
	return wire.UpdateServer200JSONResponse{
		Body: viewServer(&s), Headers: wire.UpdateServer200ResponseHeaders{ETag: etag(s.Version)},
	}, nil
}

// serverPatch turns a JSON object that has been checked against the contract into a patch.
func serverPatch(body *strictjson.Value) inventory.Patch {
	cpu, memory := body.Get("cpu"), body.Get("memory") // nil if left out
	return inventory.Patch{
		Name: field(body, "name", text), Serial: field(body, "serial", text), Site: field(body, "site", text),
		Rack: field(body, "rack", text), Position: field(body, "position", text),
		Manufacturer: field(body, "manufacturer", text), Model: field(body, "model", text),
		CPUVendor: field(cpu, "vendor", text), CPUModel: field(cpu, "model", text), Sockets: field(cpu, "sockets", integer),
		Cores: field(cpu, "cores", integer), Threads: field(cpu, "threads", integer),
		Benchmarks: field(cpu, "benchmarks", mapOf(integer)),
		MemoryMiB:  field(memory, "mib", integer), MemoryECC: field(memory, "ecc", boolean), MemoryType: field(memory, "type", text),
		Drives: field(body, "drives", listOf(drive)), RAID: field(body, "raid", raid), GPUs: field(body, "gpus", listOf(gpu)),
		UplinkMbps: field(body, "uplink_mbps", integer), Price: field(body, "price", price),
		Tags: field(body, "tags", listOf(text)), Attributes: field(body, "attributes", mapOf(text)),
	}
}

// field reads one field of a patch: absent leaves the record as it is, null makes the attribute unknown.
func field[T any](body *strictjson.Value, name string, read func(*strictjson.Value) T) inventory.Field[T] {
	v := body.Get(name)
	switch {
	case v == nil && body != nil && body.Kind == strictjson.Null: // the whole part is unknown
		return inventory.Field[T]{Set: true}
	case v == nil:
		return inventory.Field[T]{}
	case v.Kind == strictjson.Null:
		return inventory.Field[T]{Set: true}
	default:
		return inventory.To(read(v))
	}
}

func text(v *strictjson.Value) string { return v.Text }

func raid(v *strictjson.Value) inventory.RAID { return inventory.RAID(v.Text) }

func boolean(v *strictjson.Value) *bool { return &v.Bool }

func integer(v *strictjson.Value) int64 {
	n, _ := strconv.ParseInt(v.Text, 10, 64) // has been checked
	return n
}

func price(v *strictjson.Value) *inventory.Price {
	amount, _ := inventory.ParseAmount(v.Get("amount").Text) // has been checked
	return &inventory.Price{Amount: amount, Currency: v.Get("currency").Text}
}

func drive(v *strictjson.Value) inventory.Drive {
	return inventory.Drive{
		Count: integer(v.Get("count")), NominalGB: integer(v.Get("nominal_gb")),
		Medium: inventory.Medium(textOr(v.Get("medium"))), Interface: textOr(v.Get("interface")),
	}
}

func gpu(v *strictjson.Value) inventory.GPU {
	return inventory.GPU{Count: integer(v.Get("count")), Model: textOr(v.Get("model"))}
}

func textOr(v *strictjson.Value) string {
	if v == nil {
		return ""
	}
	return v.Text
}

func listOf[T any](read func(*strictjson.Value) T) func(*strictjson.Value) []T {
	return func(v *strictjson.Value) []T {
		list := make([]T, len(v.Items))
		for i := range v.Items {
			list[i] = read(&v.Items[i])
		}
		return list
	}
}

func mapOf[T any](read func(*strictjson.Value) T) func(*strictjson.Value) map[string]T {
	return func(v *strictjson.Value) map[string]T {
		entries := map[string]T{}
		for i := range v.Members {
			entries[v.Members[i].Name] = read(&v.Members[i].Value)
		}
		return entries
	}
}
