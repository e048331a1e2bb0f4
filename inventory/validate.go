package inventory

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// The limits of a server's record. Texts are counted in characters, the same through every door. Numbers end where a
// larger one can only be a mistake of the unit.
const (
	MaxText        = 200 // name, serial, external_id, model, values of attributes
	MaxWord        = 100 // site, rack, manufacturer, tags, names of attributes and benchmarks
	MaxStateReason = 500

	maxSockets = 64
	maxCores   = 65_536
	maxScore   = 1_000_000_000_000
	maxMiB     = 1 << 30 // 1 PiB
	maxPieces  = 1_000   // drives or GPUs of one kind
	maxDriveGB = 1_000_000
	maxMbps    = 10_000_000
	maxGroups  = 32 // of drives, of GPUs
	maxTags    = 64 // also of attributes and of benchmarks
)

var (
	sourcePattern     = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$`)
	positionPattern   = regexp.MustCompile(`^[1-9]\d{0,2}(\.5)?$`)
	memoryTypePattern = regexp.MustCompile(`^[A-Z][A-Z0-9]{1,15}$`)
	currencyPattern   = regexp.MustCompile(`^[A-Z]{3}$`)
)

// Validate tells whether the record may be stored, listing all that is wrong in an InvalidError. It looks at the record
// alone, not at its ID, version and times, which the store gives.
func (s *Server) Validate() error {
	f := faults{}
	s.validate(&f)
	return f.err()
}

func (s *Server) validate(f *faults) {
	s.validateIdentity(f)
	s.validatePlace(f)
	s.validateCPU(f)
	s.validateMemory(f)
	s.validateDrives(f)
	s.validateGPUs(f)
	oneOf(f, "/raid", s.RAID, "", RAIDNone, RAIDSoftware, RAIDHardware)
	f.count("/uplink_mbps", s.UplinkMbps, maxMbps)
	s.validatePrice(f)
	s.validateLabels(f)
	if s.State == "" {
		f.addf("/state", CodeRequired, "must be given: a server is never taken to be ready")
	} else {
		oneOf(f, "/state", s.State, States()...)
	}
	f.text("/state_reason", s.StateReason, MaxStateReason)
}

func (s *Server) validateIdentity(f *faults) {
	if s.Source == "" {
		f.addf("/source", CodeRequired, "must name the system that knows the server, such as \"api\"")
	}
	f.pattern("/source", s.Source, sourcePattern, "must have 1 to 63 small letters, digits and inner dashes")
	f.required("/external_id", s.ExternalID, MaxText)
	f.text("/name", s.Name, MaxText)
	f.text("/serial", s.Serial, MaxText)
	if s.Serial != "" && IsFiller(s.Serial) {
		f.addf("/serial", CodeFiller, "is what vendors write when there is no serial number: leave it out")
	}
	f.text("/manufacturer", s.Manufacturer, MaxWord)
	f.text("/model", s.Model, MaxText)
}

func (s *Server) validatePlace(f *faults) {
	f.required("/site", s.Site, MaxWord)
	f.text("/rack", s.Rack, MaxWord)
	f.pattern("/position", s.Position, positionPattern, "must be the lowest unit it fills, from 1, in whole or half units, such as \"12\" or \"12.5\"")
	if s.Position != "" && s.Rack == "" {
		f.addf("/rack", CodeRequired, "must be given where a position is")
	}
}

func (s *Server) validateCPU(f *faults) {
	cpu := s.CPU
	f.text("/cpu/vendor", cpu.Vendor, MaxWord)
	f.text("/cpu/model", cpu.Model, MaxText)
	f.count("/cpu/sockets", cpu.Sockets, maxSockets)
	f.count("/cpu/cores", cpu.Cores, maxCores)
	f.count("/cpu/threads", cpu.Threads, maxCores)
	if cpu.Cores > 0 && cpu.Sockets > cpu.Cores {
		f.addf("/cpu/cores", CodeOutOfRange, "must be the cores of all sockets together: not fewer than the sockets")
	}
	if cpu.Threads > 0 && cpu.Cores > cpu.Threads {
		f.addf("/cpu/threads", CodeOutOfRange, "must be the threads of all cores together: not fewer than the cores")
	}
	f.atMost("/cpu/benchmarks", len(cpu.Benchmarks), maxTags)
	for _, name := range slices.Sorted(maps.Keys(cpu.Benchmarks)) {
		pointer := "/cpu/benchmarks/" + escapePointer(name)
		f.required(pointer, name, MaxWord)
		f.positive(pointer, cpu.Benchmarks[name], maxScore)
	}
}

func (s *Server) validateMemory(f *faults) {
	f.count("/memory/mib", s.Memory.MiB, maxMiB)
	f.pattern("/memory/type", s.Memory.Type, memoryTypePattern, "must be a kind of memory in capitals, such as \"DDR4\"")
}

func (s *Server) validateDrives(f *faults) {
	f.atMost("/drives", len(s.Drives), maxGroups)
	for i, d := range s.Drives {
		pointer := "/drives/" + strconv.Itoa(i)
		f.positive(pointer+"/count", d.Count, maxPieces)
		f.positive(pointer+"/nominal_gb", d.NominalGB, maxDriveGB)
		oneOf(f, pointer+"/medium", d.Medium, "", MediumSSD, MediumHDD)
		oneOf(f, pointer+"/interface", d.Interface, "", "nvme", "sata", "sas")
	}
}

func (s *Server) validateGPUs(f *faults) {
	f.atMost("/gpus", len(s.GPUs), maxGroups)
	for i, g := range s.GPUs {
		pointer := "/gpus/" + strconv.Itoa(i)
		f.positive(pointer+"/count", g.Count, maxPieces)
		f.text(pointer+"/model", g.Model, MaxText)
	}
}

func (s *Server) validatePrice(f *faults) {
	if s.Price == nil {
		return
	}
	if s.Price.Amount < 0 || s.Price.Amount > maxAmount {
		f.addf("/price/amount", CodeOutOfRange, "must lie between 0 and %v", Amount(maxAmount))
	}
	if !currencyPattern.MatchString(s.Price.Currency) {
		f.addf("/price/currency", CodeMalformed, "must be three capitals, such as \"EUR\"")
	}
}

func (s *Server) validateLabels(f *faults) {
	f.atMost("/tags", len(s.Tags), maxTags)
	for i, tag := range s.Tags {
		pointer := "/tags/" + strconv.Itoa(i)
		f.required(pointer, tag, MaxWord)
		if slices.Contains(s.Tags[:i], tag) {
			f.addf(pointer, CodeRepeated, "is given twice")
		}
	}
	f.atMost("/attributes", len(s.Attributes), maxTags)
	for _, name := range slices.Sorted(maps.Keys(s.Attributes)) {
		pointer := "/attributes/" + escapePointer(name)
		f.required(pointer, name, MaxWord)
		f.required(pointer, s.Attributes[name], MaxText)
	}
}
