package inventory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// valid is a record with everything in it.
func valid() Server {
	ecc := true
	return Server{
		Source: "api", ExternalID: "m-1", Name: "web-01", Serial: "ABC123", Site: "FSN1", Rack: "A1", Position: "12.5",
		Manufacturer: "Dell", Model: "R640",
		CPU:    CPU{Vendor: "Intel", Model: "Xeon", Sockets: 2, Cores: 16, Threads: 32, Benchmarks: map[string]int64{"passmark": 20000}},
		Memory: Memory{MiB: 65536, ECC: &ecc, Type: "DDR4"},
		Drives: []Drive{{Count: 2, NominalGB: 960, Medium: MediumSSD, Interface: "nvme"}, {Count: 1, NominalGB: 8000}},
		RAID:   RAIDHardware, GPUs: []GPU{{Count: 1, Model: "RTX"}}, UplinkMbps: 1000,
		Price: &Price{Amount: 380_000, Currency: "EUR"}, Tags: []string{"gold"}, Attributes: map[string]string{"tier": "a"},
		State: StateReady, StateReason: "tested",
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(s *Server)
		want   []string // pointer and code of each fault
	}{
		"a full record":                               {func(*Server) {}, nil},
		"a record with only what is needed":           {func(s *Server) { *s = Server{Source: "api", ExternalID: "1", Site: "FSN1", State: StatePlanned} }, nil},
		"an empty record":                             {func(s *Server) { *s = Server{} }, []string{"/source required", "/external_id required", "/site required", "/state required"}},
		"a source in capitals":                        {func(s *Server) { s.Source = "NetBox" }, []string{"/source malformed"}},
		"200 characters of more than one byte":        {func(s *Server) { s.Name = strings.Repeat("é", 200) }, nil},
		"201 characters":                              {func(s *Server) { s.Name = strings.Repeat("e", 201) }, []string{"/name too_long"}},
		"bytes that are no text":                      {func(s *Server) { s.Name = "web\xff" }, []string{"/name invalid_utf8"}},
		"a line break":                                {func(s *Server) { s.Name = "web\n01" }, []string{"/name control_character"}},
		"a NUL":                                       {func(s *Server) { s.Site = "FSN\x001" }, []string{"/site control_character"}},
		"a blank behind a name, which nobody sees":    {func(s *Server) { s.Name = "web-01 " }, []string{"/name malformed"}},
		"a no-break space before a name":              {func(s *Server) { s.Name = "\u00a0web-01" }, []string{"/name malformed"}},
		"two blanks inside a name, which are kept":    {func(s *Server) { s.Name = "web  01" }, nil},
		"a vendor's filler for a serial":              {func(s *Server) { s.Serial = "To Be Filled By O.E.M." }, []string{"/serial filler"}},
		"a position in quarter units":                 {func(s *Server) { s.Position = "10.25" }, []string{"/position malformed"}},
		"a position of zero":                          {func(s *Server) { s.Position = "0" }, []string{"/position malformed"}},
		"a position with a needless zero":             {func(s *Server) { s.Position = "012" }, []string{"/position malformed"}},
		"a position in no rack":                       {func(s *Server) { s.Rack = "" }, []string{"/rack required"}},
		"fewer cores than sockets":                    {func(s *Server) { s.CPU.Cores = 1 }, []string{"/cpu/cores out_of_range"}},
		"fewer threads than cores":                    {func(s *Server) { s.CPU.Threads = 8 }, []string{"/cpu/threads out_of_range"}},
		"cores below zero":                            {func(s *Server) { s.CPU.Cores = -1 }, []string{"/cpu/cores out_of_range"}},
		"a benchmark of nothing":                      {func(s *Server) { s.CPU.Benchmarks = map[string]int64{"a/b": 0} }, []string{"/cpu/benchmarks/a~1b out_of_range"}},
		"memory in bytes instead of MiB":              {func(s *Server) { s.Memory.MiB = 68719476736 }, []string{"/memory/mib out_of_range"}},
		"a memory type in small letters":              {func(s *Server) { s.Memory.Type = "ddr4" }, []string{"/memory/type malformed"}},
		"no drives at all, which is known":            {func(s *Server) { s.Drives = []Drive{} }, nil},
		"a drive group of no drives":                  {func(s *Server) { s.Drives[1].Count = 0 }, []string{"/drives/1/count out_of_range"}},
		"a drive in bytes":                            {func(s *Server) { s.Drives[0].NominalGB = 960_000_000_000 }, []string{"/drives/0/nominal_gb out_of_range"}},
		"a medium and an interface that do not exist": {func(s *Server) { s.Drives[0] = Drive{Count: 1, NominalGB: 1, Medium: "SSD", Interface: "m.2"} }, []string{"/drives/0/medium unknown_value", "/drives/0/interface unknown_value"}},
		"too many groups of drives":                   {func(s *Server) { s.Drives = make([]Drive, 33); fillDrives(s.Drives) }, []string{"/drives too_many"}},
		"a RAID that does not exist":                  {func(s *Server) { s.RAID = "raid6" }, []string{"/raid unknown_value"}},
		"a GPU group of no GPUs":                      {func(s *Server) { s.GPUs[0].Count = 0 }, []string{"/gpus/0/count out_of_range"}},
		"a currency in small letters":                 {func(s *Server) { s.Price.Currency = "eur" }, []string{"/price/currency malformed"}},
		"a price below zero":                          {func(s *Server) { s.Price.Amount = -1 }, []string{"/price/amount out_of_range"}},
		"a price of nothing":                          {func(s *Server) { s.Price.Amount = 0 }, nil},
		"a tag twice":                                 {func(s *Server) { s.Tags = []string{"a", "b", "a"} }, []string{"/tags/2 repeated"}},
		"an attribute without a value":                {func(s *Server) { s.Attributes["tier"] = "" }, []string{"/attributes/tier required"}},
		"a state that is derived, never typed":        {func(s *Server) { s.State = "held" }, []string{"/state unknown_value"}},
		"everything wrong is told at once":            {func(s *Server) { s.Site, s.RAID, s.State = "", "x", "y" }, []string{"/site required", "/raid unknown_value", "/state unknown_value"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := valid()
			tt.change(&server)
			require.Equal(t, tt.want, faultsOf(t, server.Validate()))
		})
	}
}

func fillDrives(drives []Drive) {
	for i := range drives {
		drives[i] = Drive{Count: 1, NominalGB: 1}
	}
}

// faultsOf gives the pointer and code of each fault, and insists on a sentence.
func faultsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	faults := make([]string, len(invalid.Fields))
	for i, f := range invalid.Fields {
		require.NotEmpty(t, f.Detail)
		require.Contains(t, err.Error(), f.Pointer+": "+f.Detail)
		faults[i] = f.Pointer + " " + f.Code
	}
	return faults
}

func TestIsFiller(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "  ", "0", "0000000000", "To Be Filled By O.E.M.", "to be filled by O.E.M. ", "Not Specified", "Default string",
		"UNKNOWN", "None", "N/A", "xxxxxxxx", "--", "9876543210",
	} {
		require.True(t, IsFiller(text), "%q", text)
	}
	for _, text := range []string{"ABC123", "7", "00000001", "CZ3211XYZ0", "none-5"} {
		require.False(t, IsFiller(text), "%q", text)
	}
}

func TestFilterValidate(t *testing.T) {
	t.Parallel()
	good := Filter{Sites: []string{"FSN1"}, States: []State{StateReady, StateRetired}, Query: "web", Limit: 5}
	require.NoError(t, good.validate())
	bad := Filter{Sites: []string{"FSN1", ""}, States: []State{"held"}, Names: make([]string, 201), Query: "a\x00b"}
	faults := faultsOf(t, bad.validate())
	require.Subset(t, faults, []string{"/site/1 required", "/state/0 unknown_value", "/name too_many", "/q control_character"})
}
