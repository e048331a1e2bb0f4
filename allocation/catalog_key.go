package allocation

import (
	"slices"
	"strconv"

	"allocator/inventory"
)

// kindKey builds keys that are equal for servers that only what is their own tells apart, one after the other in the same
// memory: a million of them are built before a process can answer. Texts cannot contain its separator.
type kindKey struct {
	key   []byte
	names []string
}

func (k *kindKey) text(texts ...string) {
	for _, t := range texts {
		k.key = append(append(k.key, t...), 0)
	}
}

func (k *kindKey) number(numbers ...int64) {
	for _, n := range numbers {
		k.key = append(strconv.AppendInt(k.key, n, 36), 0)
	}
}

func (k *kindKey) flag(f *bool) {
	switch {
	case f == nil:
		k.text("?")
	case *f:
		k.text("1")
	default:
		k.text("0")
	}
}

// list marks where a list begins, how long it is, and whether it is known at all.
func (k *kindKey) list(known bool, length int) {
	if !known {
		length = -1
	}
	k.number(int64(length))
}

// sortedNames are those of a map, good until the next are asked for.
func sortedNames[V any](k *kindKey, of map[string]V) []string {
	k.names = k.names[:0]
	for name := range of {
		k.names = append(k.names, name)
	}
	slices.Sort(k.names)
	return k.names
}

// of builds the key of everything that the rules of a kind can look at, or the ranking. It is good until the next is built.
func (k *kindKey) of(s *inventory.Server) []byte {
	k.key = k.key[:0]
	k.text(s.Site, s.Manufacturer, s.Model, s.CPU.Vendor, s.CPU.Model, s.Memory.Type, string(s.RAID))
	k.number(s.CPU.Sockets, s.CPU.Cores, s.CPU.Threads, s.Memory.MiB, s.UplinkMbps)
	k.flag(s.Memory.ECC)
	k.list(s.Drives != nil, len(s.Drives))
	for _, d := range s.Drives {
		k.number(d.Count, d.NominalGB)
		k.text(string(d.Medium), d.Interface)
	}
	k.list(s.GPUs != nil, len(s.GPUs))
	for _, g := range s.GPUs {
		k.number(g.Count)
		k.text(g.Model)
	}
	if s.Price != nil {
		k.number(int64(s.Price.Amount))
		k.text(s.Price.Currency)
	}
	k.list(true, len(s.Tags))
	k.text(s.Tags...)
	k.list(true, len(s.CPU.Benchmarks))
	for _, name := range sortedNames(k, s.CPU.Benchmarks) {
		k.text(name)
		k.number(s.CPU.Benchmarks[name])
	}
	k.list(true, len(s.Attributes))
	for _, name := range sortedNames(k, s.Attributes) {
		k.text(name, s.Attributes[name])
	}
	return k.key
}
