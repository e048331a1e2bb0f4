package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Field is one field of a Patch. The zero Field leaves the record as it is; Set with the zero value makes the attribute
// unknown.
type Field[T any] struct {
	Set   bool
	Value T
}

// To returns the Field that sets a value.
func To[T any](value T) Field[T] { return Field[T]{Set: true, Value: value} }

// Patch is what Service.Update is asked for. Lists and maps are replaced as a whole. A server's source, external_id and
// state are not among the fields: the first two are its identity, and a state is changed where it is known what holds
// the server.
type Patch struct {
	Name, Serial            Field[string]
	Site, Rack, Position    Field[string]
	Manufacturer, Model     Field[string]
	CPUVendor, CPUModel     Field[string]
	Sockets, Cores, Threads Field[int64]
	Benchmarks              Field[map[string]int64]
	MemoryMiB               Field[int64]
	MemoryECC               Field[*bool]
	MemoryType              Field[string]
	Drives                  Field[[]Drive]
	RAID                    Field[RAID]
	GPUs                    Field[[]GPU]
	UplinkMbps              Field[int64]
	Price                   Field[*Price]
	Tags                    Field[[]string]
	Attributes              Field[map[string]string]
}

// Changed is one attribute that a patch has changed.
type Changed struct {
	Field       string // as in JSON, nested ones with a point: "cpu.cores"
	From, To    string // for people; "unknown" where there is no value
	Descriptive bool   // may change while the server is held or bound
}

// Apply returns the server as the patch makes it, and what is different; nothing different is empty.
func (p Patch) Apply(s Server) (Server, []Changed) {
	var c changes
	describe(&c, "name", p.Name, &s.Name, equal)
	describe(&c, "serial", p.Serial, &s.Serial, equal)
	describe(&c, "price", p.Price, &s.Price, equalPointers)
	describe(&c, "tags", p.Tags, &s.Tags, slices.Equal)
	describe(&c, "attributes", p.Attributes, &s.Attributes, maps.Equal)

	rebuild(&c, "site", p.Site, &s.Site, equal)
	rebuild(&c, "rack", p.Rack, &s.Rack, equal)
	rebuild(&c, "position", p.Position, &s.Position, equal)
	rebuild(&c, "manufacturer", p.Manufacturer, &s.Manufacturer, equal)
	rebuild(&c, "model", p.Model, &s.Model, equal)
	rebuild(&c, "cpu.vendor", p.CPUVendor, &s.CPU.Vendor, equal)
	rebuild(&c, "cpu.model", p.CPUModel, &s.CPU.Model, equal)
	rebuild(&c, "cpu.sockets", p.Sockets, &s.CPU.Sockets, equal)
	rebuild(&c, "cpu.cores", p.Cores, &s.CPU.Cores, equal)
	rebuild(&c, "cpu.threads", p.Threads, &s.CPU.Threads, equal)
	rebuild(&c, "cpu.benchmarks", p.Benchmarks, &s.CPU.Benchmarks, maps.Equal)
	rebuild(&c, "memory.mib", p.MemoryMiB, &s.Memory.MiB, equal)
	rebuild(&c, "memory.ecc", p.MemoryECC, &s.Memory.ECC, equalPointers)
	rebuild(&c, "memory.type", p.MemoryType, &s.Memory.Type, equal)
	rebuild(&c, "drives", p.Drives, &s.Drives, equalParts)
	rebuild(&c, "raid", p.RAID, &s.RAID, equal)
	rebuild(&c, "gpus", p.GPUs, &s.GPUs, equalParts)
	rebuild(&c, "uplink_mbps", p.UplinkMbps, &s.UplinkMbps, equal)
	return s, c
}

type changes []Changed

// describe sets a field that says nothing about the machine itself and where it stands.
func describe[T any](c *changes, name string, to Field[T], have *T, same func(a, b T) bool) {
	c.set(name, true, edit(to, have, same))
}

// rebuild sets a field that a buyer who holds the server was promised.
func rebuild[T any](c *changes, name string, to Field[T], have *T, same func(a, b T) bool) {
	c.set(name, false, edit(to, have, same))
}

func (c *changes) set(name string, descriptive bool, fromTo []string) {
	if fromTo != nil {
		*c = append(*c, Changed{Field: name, From: fromTo[0], To: fromTo[1], Descriptive: descriptive})
	}
}

// edit returns the old and the new value for people, or nil if nothing is different.
func edit[T any](to Field[T], have *T, same func(a, b T) bool) []string {
	if !to.Set || same(*have, to.Value) {
		return nil
	}
	from := *have
	*have = to.Value
	return []string{words(from), words(to.Value)}
}

// words writes a value for people: a text as it is, anything else as JSON.
func words(value any) string {
	switch v := value.(type) {
	case string:
		return cmp.Or(v, "unknown")
	case RAID:
		return words(string(v))
	case *Price:
		if v != nil {
			return v.Amount.String() + " " + v.Currency
		}
	case int64:
		if v == 0 {
			return words("")
		}
	}
	switch text, err := json.Marshal(value); {
	case err != nil:
		return fmt.Sprint(value)
	case string(text) == "null":
		return words("")
	default:
		return string(text)
	}
}

func equal[T comparable](a, b T) bool { return a == b }

func equalPointers[T comparable](a, b *T) bool {
	return a == b || (a != nil && b != nil && *a == *b)
}

// equalParts keeps the difference between unknown and none.
func equalParts[T comparable](a, b []T) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}
