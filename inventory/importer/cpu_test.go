package importer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCPUName(t *testing.T) {
	t.Parallel()
	tests := map[string][2]string{
		"Intel Xeon E3-1275v5":                      {"Intel", "Xeon E3-1275 v5"},
		"Intel Xeon E3-1275V6":                      {"Intel", "Xeon E3-1275 v6"},
		"Intel(R) Xeon(R) CPU E3-1275 v5 @ 3.60GHz": {"Intel", "Xeon E3-1275 v5"},
		"Intel Xeon E5-1650V3 ":                     {"Intel", "Xeon E5-1650 v3"},
		"Intel XEON E-2176G":                        {"Intel", "Xeon E-2176G"},
		"Intel Xeon Gold 5412U":                     {"Intel", "Xeon Gold 5412U"},
		"Intel Core i9-9900K":                       {"Intel", "Core i9-9900K"},
		"Intel(R) Core(TM) i9-9900K CPU @ 3.60GHz":  {"Intel", "Core i9-9900K"},
		"AMD Ryzen 5 3600":                          {"AMD", "Ryzen 5 3600"},
		"AMD Ryzen 5 3600 6-Core Processor":         {"AMD", "Ryzen 5 3600"},
		"AMD Ryzen 7 PRO 1700X":                     {"AMD", "Ryzen 7 PRO 1700X"},
		"AMD EPYC 7502P 32-Core Processor":          {"AMD", "EPYC 7502P"},
		"Cavium ThunderX2":                          {"", "Cavium ThunderX2"},
		"  ":                                        {"", ""},
		"Intel":                                     {"Intel", ""},
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			vendor, model := cpuName(text)
			require.Equal(t, want, [2]string{vendor, model})
		})
	}
}
