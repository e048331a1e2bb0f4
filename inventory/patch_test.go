package inventory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPatchApply(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	tests := map[string]struct {
		patch   Patch
		changed []Changed
		become  func(s *Server)
	}{
		"an empty patch": {Patch{}, nil, func(*Server) {}},
		"the same values again": {
			Patch{Name: To("web-01"), MemoryECC: To(&yes), Price: To(&Price{380_000, "EUR"}), Tags: To([]string{"gold"})},
			nil, func(*Server) {},
		},
		"a name": {
			Patch{Name: To("web-02")},
			[]Changed{{"name", "web-01", "web-02", true}},
			func(s *Server) { s.Name = "web-02" },
		},
		"a serial that turns out to be unknown": {
			Patch{Serial: To("")},
			[]Changed{{"serial", "ABC123", "unknown", true}},
			func(s *Server) { s.Serial = "" },
		},
		"a price that is taken away": {
			Patch{Price: To[*Price](nil)},
			[]Changed{{"price", "38.00 EUR", "unknown", true}},
			func(s *Server) { s.Price = nil },
		},
		"no drives is not the same as unknown drives": {
			Patch{Drives: To([]Drive{}), GPUs: To[[]GPU](nil)},
			[]Changed{
				{"drives", `[{"count":2,"nominal_gb":960,"medium":"ssd","interface":"nvme"},{"count":1,"nominal_gb":8000}]`, "[]", false},
				{"gpus", `[{"model":"RTX","count":1}]`, "unknown", false},
			},
			func(s *Server) { s.Drives, s.GPUs = []Drive{}, nil },
		},
		"hardware and place beside a description": {
			Patch{Rack: To("B2"), Tags: To([]string{}), RAID: To(RAIDSoftware), MemoryECC: To(&no), Cores: To[int64](0)},
			[]Changed{
				{"tags", `["gold"]`, "[]", true},
				{"rack", "A1", "B2", false},
				{"cpu.cores", "16", "unknown", false},
				{"memory.ecc", "true", "false", false},
				{"raid", "hardware", "software", false},
			},
			func(s *Server) {
				s.Rack, s.Tags, s.RAID, s.Memory.ECC, s.CPU.Cores = "B2", []string{}, RAIDSoftware, &no, 0
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := valid()
			after, changed := tt.patch.Apply(before)
			require.Equal(t, tt.changed, changed)
			require.Equal(t, valid(), before, "the record that was read stays as it is")
			want := valid()
			tt.become(&want)
			require.Equal(t, want, after)
		})
	}
}

// TestPatchReachesEveryAttribute makes every attribute unknown: what a patch forgot would still be there.
func TestPatchReachesEveryAttribute(t *testing.T) {
	t.Parallel()
	patch := Patch{
		Name: To(""), Serial: To(""), Site: To(""), Rack: To(""), Position: To(""), Manufacturer: To(""), Model: To(""),
		CPUVendor: To(""), CPUModel: To(""), Sockets: To[int64](0), Cores: To[int64](0), Threads: To[int64](0),
		Benchmarks: To[map[string]int64](nil), MemoryMiB: To[int64](0), MemoryECC: To[*bool](nil), MemoryType: To(""),
		Drives: To[[]Drive](nil), RAID: To[RAID](""), GPUs: To[[]GPU](nil), UplinkMbps: To[int64](0),
		Price: To[*Price](nil), Tags: To[[]string](nil), Attributes: To[map[string]string](nil),
	}
	after, changed := patch.Apply(valid())
	require.Equal(t, Server{Source: "api", ExternalID: "m-1", State: StateReady, StateReason: "tested"}, after)
	require.Len(t, changed, 23)
}
