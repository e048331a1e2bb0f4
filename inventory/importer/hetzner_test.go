package importer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/inventory"
)

var auction = Hetzner{Currency: "EUR", State: inventory.StateReady}

// plainRow is the first row of the feed of 2026-03-13, as it came.
const plainRow = `{"id": 2945706, "key": 2945706, "name": "Server Auction",
	"description": ["Intel Xeon E3-1275v5", "4x RAM 16384 MB DDR4 ECC", "2x SSD SATA 480 GB Datacenter", "NIC 1 Gbit - Intel I219-LM", "IPv4", "ECC", "iNIC", "DC", "SSD", "ECC", "INIC"],
	"information": ["4 x RAM 16384 MB DDR4 ECC", "2 x SSD SATA 480 GB Datacenter", "NIC 1 Gbit - Intel I219-LM"],
	"category": "serverboerse", "cat_id": 99921, "cpu": "Intel Xeon E3-1275v5", "cpu_count": 1, "is_highio": false,
	"traffic": "unlimited", "bandwidth": 1000, "ram": ["4x RAM 16384 MB DDR4 ECC"], "ram_size": 64, "price": 33,
	"setup_price": 0, "hourly_price": 0.0529, "hdd_arr": ["480 GB Datacenter SSD", "480 GB Datacenter SSD"],
	"hdd_hr": ["480 GB Datacenter SSD", "480 GB Datacenter SSD"], "hdd_size": 480, "hdd_count": 2,
	"serverDiskData": {"nvme": [], "sata": [480, 480], "hdd": [], "general": [480]}, "is_ecc": true,
	"datacenter": "FSN1-DC1", "datacenter_hr": "#FSN1-DC1", "specials": ["IPv4", "ECC", "iNIC"], "dist": ["Rescue system"],
	"fixed_price": false, "next_reduce": 284970, "next_reduce_hr": true, "next_reduce_timestamp": 1773718053,
	"ip_price": {"Monthly": 1.7, "Hourly": 0.0027, "Amount": 1}}`

// Rows of the feed, and one with a RAID controller, which that day's feed did not have.
func TestHetznerRows(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		row  string
		want inventory.Server
	}{
		"two equal SSDs, everything told": {plainRow, inventory.Server{
			ExternalID: "2945706", Name: "sb-2945706", Site: "FSN1", CPU: inventory.CPU{Vendor: "Intel", Model: "Xeon E3-1275 v5", Sockets: 1},
			Memory: inventory.Memory{MiB: 65536, ECC: new(true), Type: "DDR4"},
			Drives: []inventory.Drive{{Count: 2, NominalGB: 480, Medium: inventory.MediumSSD, Interface: "sata"}},
			GPUs:   []inventory.GPU{}, UplinkMbps: 1000, Price: &inventory.Price{Amount: 330_000, Currency: "EUR"},
			Attributes: map[string]string{"datacenter": "FSN1-DC1", "memory_kit": "4x RAM 16384 MB DDR4 ECC", "nic": "Intel I219-LM"},
		}},
		"two sizes of NVMe drive, and a network card that nobody lists": {
			`{"id": 2428172, "cpu": "AMD Ryzen 5 3600", "cpu_count": 1, "ram": ["2x RAM 32768 MB DDR4 ECC"], "ram_size": 64,
			"is_ecc": true, "information": ["2 x RAM 32768 MB DDR4 ECC", "1 x SSD M.2 NVMe 1 TB", "2 x SSD M.2 NVMe 512 GB"],
			"serverDiskData": {"nvme": [512, 512, 1000], "sata": [], "hdd": [], "general": [512, 1000]},
			"specials": ["IPv4", "ECC"], "datacenter": "FSN1-DC15", "price": 55}`,
			inventory.Server{
				ExternalID: "2428172", Name: "sb-2428172", Site: "FSN1", CPU: inventory.CPU{Vendor: "AMD", Model: "Ryzen 5 3600", Sockets: 1},
				Memory: inventory.Memory{MiB: 65536, ECC: new(true), Type: "DDR4"},
				Drives: []inventory.Drive{
					{Count: 1, NominalGB: 1000, Medium: inventory.MediumSSD, Interface: "nvme"},
					{Count: 2, NominalGB: 512, Medium: inventory.MediumSSD, Interface: "nvme"},
				},
				GPUs: []inventory.GPU{}, Price: &inventory.Price{Amount: 550_000, Currency: "EUR"},
				Attributes: map[string]string{"datacenter": "FSN1-DC15", "memory_kit": "2x RAM 32768 MB DDR4 ECC"},
			},
		},
		"hard disks of two sizes, SSDs and a GPU": {
			`{"id": 2947704, "cpu": "Intel Core i7-7700", "cpu_count": 1, "ram": ["4x RAM 16384 MB DDR4"], "ram_size": 64,
			"is_ecc": false, "information": ["4 x RAM 16384 MB DDR4", "1 x HDD SATA 10 TB Enterprise", "1 x HDD SATA 4,0 TB Enterprise", "2 x SSD SATA 512 GB", "GPU - GeForce GTX 1080", "NIC 1 Gbit - Intel I219-LM"],
			"serverDiskData": {"nvme": [], "sata": [512, 512], "hdd": [4000, 10000], "general": [512, 4000, 10000]},
			"specials": ["IPv4", "GPU", "iNIC"], "datacenter": "FSN1-DC21", "price": 130}`,
			inventory.Server{
				ExternalID: "2947704", Name: "sb-2947704", Site: "FSN1", CPU: inventory.CPU{Vendor: "Intel", Model: "Core i7-7700", Sockets: 1},
				Memory: inventory.Memory{MiB: 65536, ECC: new(false), Type: "DDR4"},
				Drives: []inventory.Drive{
					{Count: 1, NominalGB: 10000, Medium: inventory.MediumHDD, Interface: "sata"},
					{Count: 1, NominalGB: 4000, Medium: inventory.MediumHDD, Interface: "sata"},
					{Count: 2, NominalGB: 512, Medium: inventory.MediumSSD, Interface: "sata"},
				},
				GPUs: []inventory.GPU{{Model: "GeForce GTX 1080", Count: 1}}, UplinkMbps: 1000,
				Price:      &inventory.Price{Amount: 1_300_000, Currency: "EUR"},
				Attributes: map[string]string{"datacenter": "FSN1-DC21", "memory_kit": "4x RAM 16384 MB DDR4", "nic": "Intel I219-LM"},
			},
		},
		"one module without ECC among three that have it, sold as ECC": {
			`{"id": 2911536, "cpu": "Intel XEON E-2176G", "cpu_count": 1,
			"ram": ["1x RAM 32768 MB DDR4", "3x RAM 32768 MB DDR4 ECC"], "ram_size": 128, "is_ecc": true,
			"information": ["1 x RAM 32768 MB DDR4", "3 x RAM 32768 MB DDR4 ECC", "2 x SSD U.2 NVMe 960 GB Datacenter", "NIC 1 Gbit - Intel I219-LM"],
			"serverDiskData": {"nvme": [960, 960], "sata": [], "hdd": [], "general": [960]},
			"specials": ["IPv4", "ECC", "iNIC"], "datacenter": "FSN1-DC5", "price": 86}`,
			inventory.Server{
				ExternalID: "2911536", Name: "sb-2911536", Site: "FSN1", CPU: inventory.CPU{Vendor: "Intel", Model: "Xeon E-2176G", Sockets: 1},
				Memory: inventory.Memory{MiB: 131072, Type: "DDR4"},
				Drives: []inventory.Drive{{Count: 2, NominalGB: 960, Medium: inventory.MediumSSD, Interface: "nvme"}},
				GPUs:   []inventory.GPU{}, UplinkMbps: 1000, Price: &inventory.Price{Amount: 860_000, Currency: "EUR"},
				Tags: []string{"mixed-memory-kit"},
				Attributes: map[string]string{
					"datacenter": "FSN1-DC5", "memory_kit": "1x RAM 32768 MB DDR4, 3x RAM 32768 MB DDR4 ECC", "nic": "Intel I219-LM",
				},
			},
		},
		"a comma in the size, registered memory, an odd number of modules": {
			`{"id": 1, "cpu": "AMD EPYC 7502P", "cpu_count": 1, "ram": ["7x RAM 32768 MB DDR4 ECC reg."], "ram_size": 224,
			"is_ecc": true, "information": ["7 x RAM 32768 MB DDR4 ECC reg.", "2 x SSD U.2 NVMe 1,92 TB Datacenter", "1 x SSD U.2 NVMe 1,92 TB Datacenter"],
			"serverDiskData": {"nvme": [1920, 1920, 1920], "sata": [], "hdd": []}, "specials": ["IPv4", "ECC"],
			"datacenter": "HEL1-DC2", "price": 109.5}`,
			inventory.Server{
				ExternalID: "1", Name: "sb-1", Site: "HEL1", CPU: inventory.CPU{Vendor: "AMD", Model: "EPYC 7502P", Sockets: 1},
				Memory: inventory.Memory{MiB: 229376, ECC: new(true), Type: "DDR4"},
				Drives: []inventory.Drive{{Count: 3, NominalGB: 1920, Medium: inventory.MediumSSD, Interface: "nvme"}},
				GPUs:   []inventory.GPU{}, Price: &inventory.Price{Amount: 1_095_000, Currency: "EUR"},
				Attributes: map[string]string{"datacenter": "HEL1-DC2", "memory_kit": "7x RAM 32768 MB DDR4 ECC reg."},
			},
		},
		"a RAID controller, no drives, no price, a GPU that is marked and not named, two kinds of memory": {
			`{"id": 2, "cpu": "", "cpu_count": 2, "ram": ["1x RAM 8192 MB DDR3", "1x RAM 8192 MB DDR4"], "ram_size": 16,
			"is_ecc": false, "information": ["RAID Controller 4-Port SATA PCI-E - LSI MegaRAID SAS 9260-4i", "NIC 10 Gbit"],
			"serverDiskData": {"nvme": [], "sata": [], "hdd": []}, "specials": ["HWR", "GPU"], "datacenter": "NBG1"}`,
			inventory.Server{
				ExternalID: "2", Name: "sb-2", Site: "NBG1", CPU: inventory.CPU{Sockets: 2}, Memory: inventory.Memory{MiB: 16384, ECC: new(false)},
				Drives: []inventory.Drive{}, RAID: inventory.RAIDHardware, UplinkMbps: 10000,
				Tags:       []string{"mixed-memory-kit"},
				Attributes: map[string]string{"datacenter": "NBG1", "memory_kit": "1x RAM 8192 MB DDR3, 1x RAM 8192 MB DDR4"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers, err := auction.Read(strings.NewReader(`{"server": [` + tt.row + `]}`))
			require.NoError(t, err)
			tt.want.Source, tt.want.State = "hetzner", inventory.StateReady
			require.Equal(t, []inventory.Server{tt.want}, servers)
		})
	}
}

// What a row says in two ways, or not at all, is told with its place; a guess would be sold.
func TestHetznerRefusesRows(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ from, to, want string }{
		"memory in another unit":          {`"ram": ["4x RAM 16384 MB DDR4 ECC"]`, `"ram": ["4x RAM 16 GB DDR4 ECC"]`, `the memory "4x RAM 16 GB DDR4 ECC" cannot be read`},
		"modules that do not add up":      {`"ram_size": 64`, `"ram_size": 32`, "ram says 65536 MB and ram_size 32 GB"},
		"drives of two different numbers": {`"sata": [480, 480]`, `"sata": [480]`, "serverDiskData {[] [480] []}"},
		"drives of two different sizes":   {`"2 x SSD SATA 480 GB Datacenter", "NIC`, `"2 x SSD SATA 500 GB", "NIC`, "information lists the drives {[] [500 500] []}"},
		"a drive in an unknown spelling":  {`"2 x SSD SATA 480 GB Datacenter", "NIC`, `"two SSDs", "NIC`, "information lists the drives"},
		"no data centre":                  {`"datacenter": "FSN1-DC1"`, `"datacenter": ""`, "/site: must not be empty"},
		"a price below zero":              {`"price": 33`, `"price": -33`, "is no amount of money"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(plainRow, tt.from, tt.to, 1)
			require.NotEqual(t, plainRow, broken)
			servers, err := auction.Read(strings.NewReader(`{"server": [` + plainRow + `, ` + broken + `]}`))
			require.ErrorContains(t, err, tt.want)
			require.Nil(t, servers, "all rows or none")
			var row *RowError
			require.ErrorAs(t, err, &row)
			require.Equal(t, 1, row.Row)
			require.Equal(t, "2945706", row.ExternalID)
		})
	}
}

func TestHetznerRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"nothing": "", "no JSON": "id;cpu\n1;x", "another list": `{"servers": []}`, "a list alone": `[]`, "an archive": "PK\x03\x04",
		"two feeds": `{"server": []} {"server": []}`,
	} {
		_, err := auction.Read(strings.NewReader(content))
		require.ErrorContains(t, err, "this is no feed of Hetzner's auction", name)
	}
}

// Nothing in the feed tells a state, so without one from the caller no row passes.
func TestHetznerTakesNothingForReady(t *testing.T) {
	t.Parallel()
	_, err := Hetzner{Currency: "EUR"}.Read(strings.NewReader(`{"server": [` + plainRow + `]}`))
	var invalid *inventory.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "/state", invalid.Fields[0].Pointer)
}

func TestSample(t *testing.T) {
	t.Parallel()
	servers, err := Sample()
	require.NoError(t, err)
	require.Len(t, servers, 100)
	got := survey(servers)
	for _, feature := range []string{
		"FSN1", "HEL1", "NBG1", "Intel", "AMD", "ecc", "no ecc", "ecc unknown", "DDR3", "DDR4", "DDR5", "nvme", "sata", "hdd",
		"mixed drives", "gpu", "uplink unknown", "32 GiB", "512 GiB", "mixed-memory-kit", "16 drives",
	} {
		require.Positive(t, got[feature], feature)
	}
	require.Equal(t, 100, got["FSN1"]+got["HEL1"]+got["NBG1"])

	again, err := Sample()
	require.NoError(t, err)
	again[0].Attributes["datacenter"] = "changed"
	require.NotEqual(t, again[0].Attributes, servers[0].Attributes, "each call gives servers of its own")
}

// survey counts what a list of servers has.
func survey(servers []inventory.Server) map[string]int {
	count := map[string]int{}
	for _, s := range servers {
		count[s.Site]++
		count[s.CPU.Vendor]++
		count[s.Memory.Type]++
		count["MiB"] += int(s.Memory.MiB)
		count["EUR"] += int(s.Price.Amount / 10_000)
		switch {
		case s.Memory.ECC == nil:
			count["ecc unknown"]++
		case *s.Memory.ECC:
			count["ecc"]++
		default:
			count["no ecc"]++
		}
		kinds, drives := map[string]bool{}, int64(0)
		for _, d := range s.Drives {
			drives += d.Count
			count["GB"] += int(d.Count * d.NominalGB)
			kind := d.Interface
			if d.Medium == inventory.MediumHDD {
				kind = "hdd"
			}
			kinds[kind] = true
		}
		for kind := range kinds {
			count[kind]++
		}
		count["drives"] += int(drives)
		if drives == 16 {
			count["16 drives"]++
		}
		if len(kinds) > 1 {
			count["mixed drives"]++
		}
		if len(s.GPUs) > 0 {
			count["gpu"]++
		}
		if s.UplinkMbps == 0 {
			count["uplink unknown"]++
		}
		switch s.Memory.MiB {
		case 32768:
			count["32 GiB"]++
		case 524288:
			count["512 GiB"]++
		}
		for _, tag := range s.Tags {
			count[tag]++
		}
	}
	return count
}

// wholeFeed is the feed from which the sample is taken. It is not part of the repository.
const wholeFeed = "../../../shared/data/hetzner_serverboerse_2026-03-13_EUR.json"

// The sums were counted in the file by other means: 67,088 GB of memory in ram_size, 1,987 entries in hdd_arr,
// 58,994 EUR in price; 27 rows with a GPU, 91 without a network card, 233 with more than one kind of drive.
func TestHetznerWholeFeed(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(wholeFeed)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the whole feed is not beside this repository; the sample's PROVENANCE.md says where it is from")
	}
	require.NoError(t, err)
	servers, err := auction.Read(strings.NewReader(string(content)))
	require.NoError(t, err)
	require.Len(t, servers, 693)

	got := survey(servers)
	require.Equal(t, 693, got["FSN1"]+got["HEL1"]+got["NBG1"])
	require.Equal(t, 693, got["Intel"]+got["AMD"])
	require.Equal(t, 693, got["DDR3"]+got["DDR4"]+got["DDR5"])
	require.Equal(t, 67_088*1024, got["MiB"])
	require.Equal(t, 58_994, got["EUR"])
	require.Equal(t, 1_987, got["drives"])
	require.Equal(t, 27, got["gpu"])
	require.Equal(t, 91, got["uplink unknown"])
	require.Equal(t, 233, got["mixed drives"])
	require.Equal(t, 373-2, got["ecc"])
	require.Equal(t, 320, got["no ecc"])
	require.Equal(t, 2, got["ecc unknown"])

	var feed struct {
		Server []struct {
			Disks map[string][]int `json:"serverDiskData"` //nolint:tagliatelle // the feed's own word
		} `json:"server"`
	}
	require.NoError(t, json.Unmarshal(content, &feed))
	gigabytes := 0
	for _, row := range feed.Server {
		for _, kind := range []string{"nvme", "sata", "hdd"} {
			for _, size := range row.Disks[kind] {
				gigabytes += size
			}
		}
	}
	require.Equal(t, gigabytes, got["GB"])
}
