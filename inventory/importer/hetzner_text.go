package importer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"allocator/inventory"
)

// The lines of a row, such as
//
//	4x RAM 16384 MB DDR4 ECC
//	2 x SSD U.2 NVMe 1,92 TB Datacenter
//	1 x HDD SATA 16,0 TB Enterprise
//	NIC 1 Gbit - Intel I219-LM
//	GPU - GeForce GTX 1080
var (
	ramLine   = regexp.MustCompile(`^(\d+) ?x RAM (\d+) MB (DDR\d)( ECC)?( reg\.)?$`)
	driveLine = regexp.MustCompile(`^(\d+) ?x (SSD|HDD) (?:(?:M\.2|U\.2) )?(NVMe|SATA|SAS) (\d+)(?:,(\d{1,3}))? (GB|TB)\b`)
	nicLine   = regexp.MustCompile(`^NIC (\d+) Gbit(?: - (.+))?$`)
	gpuLine   = regexp.MustCompile(`^(?:(\d+) ?x )?GPU - (.+)$`)
)

// memory adds up the modules. Whether the memory corrects errors is known only if every module and the row itself say
// the same: some machines have a module without ECC among others that have it, and are sold as ECC. The kit is what the
// modules are, for people.
func (r *hetznerRow) memory() (memory inventory.Memory, kit string, err error) {
	ecc, types := map[bool]bool{r.IsECC: true}, map[string]bool{}
	for _, line := range r.RAM {
		m := ramLine.FindStringSubmatch(line)
		if m == nil {
			return memory, "", fmt.Errorf("the memory %q cannot be read", line)
		}
		memory.MiB += number(m[1]) * number(m[2])
		types[m[3]] = true
		ecc[m[4] != ""] = true
	}
	if memory.MiB != 1024*r.RAMSize {
		return memory, "", fmt.Errorf("ram says %d MB and ram_size %d GB", memory.MiB, r.RAMSize)
	}
	if len(r.RAM) > 0 && len(ecc) == 1 {
		memory.ECC = &r.IsECC
	}
	if len(types) == 1 {
		memory.Type = slices.Collect(maps.Keys(types))[0]
	}
	return memory, strings.Join(r.RAM, ", "), nil
}

// drives are read from the lines, which alone tell how a hard disk is connected, and compared with serverDiskData.
func (r *hetznerRow) drives() ([]inventory.Drive, error) {
	drives := []inventory.Drive{} // a machine without drives is on offer as one
	var read hetznerDisks
	for _, line := range r.Information {
		m := driveLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		d := inventory.Drive{
			Count: number(m[1]), NominalGB: nominalGB(m[4], m[5], m[6]),
			Medium: inventory.Medium(strings.ToLower(m[2])), Interface: strings.ToLower(m[3]),
		}
		drives = add(drives, d)
		for range min(d.Count, 1000) {
			read.add(d)
		}
	}
	if !read.equal(&r.Disks) {
		return nil, fmt.Errorf("information lists the drives %v, and serverDiskData %v", read, r.Disks)
	}
	return drives, nil
}

// add puts a drive to those of its kind.
func add(drives []inventory.Drive, d inventory.Drive) []inventory.Drive {
	for i := range drives {
		same := drives[i]
		same.Count = d.Count
		if same == d {
			drives[i].Count += d.Count
			return drives
		}
	}
	return append(drives, d)
}

func (d *hetznerDisks) add(drive inventory.Drive) {
	switch {
	case drive.Medium == inventory.MediumHDD:
		d.HDD = append(d.HDD, drive.NominalGB)
	case drive.Interface == "nvme":
		d.NVMe = append(d.NVMe, drive.NominalGB)
	default:
		d.SATA = append(d.SATA, drive.NominalGB)
	}
}

func (d *hetznerDisks) equal(other *hetznerDisks) bool {
	return sameSizes(d.NVMe, other.NVMe) && sameSizes(d.SATA, other.SATA) && sameSizes(d.HDD, other.HDD)
}

func sameSizes(a, b []int64) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// nominalGB reads "1", "92", "TB" as 1920: the feed writes a comma before the fraction.
func nominalGB(whole, fraction, unit string) int64 {
	thousandths := number(whole)*1000 + number((fraction + "000")[:3])
	if unit == "GB" {
		return thousandths / 1000
	}
	return thousandths
}

// uplink is what the network card can do; machines whose card is not listed have one as well, an unknown one.
func (r *hetznerRow) uplink() (mbps int64, nic string) {
	for _, line := range r.Information {
		if m := nicLine.FindStringSubmatch(line); m != nil {
			return 1000 * number(m[1]), m[2]
		}
	}
	return 0, ""
}

// gpus: the feed marks machines with a GPU, so that one without the mark and without a line is known to have none.
func (r *hetznerRow) gpus() []inventory.GPU {
	gpus := []inventory.GPU{}
	for _, line := range r.Information {
		if m := gpuLine.FindStringSubmatch(line); m != nil {
			gpus = append(gpus, inventory.GPU{Model: m[2], Count: max(number(m[1]), 1)})
		}
	}
	if len(gpus) == 0 && slices.Contains(r.Specials, "GPU") {
		return nil
	}
	return gpus
}

// raid: a controller is listed where there is one, but nothing tells that there is none.
func (r *hetznerRow) raid() inventory.RAID {
	isController := func(line string) bool { return strings.Contains(line, "RAID Controller") }
	if slices.Contains(r.Specials, "HWR") || slices.ContainsFunc(r.Information, isController) {
		return inventory.RAIDHardware
	}
	return ""
}

// number reads digits that a pattern has matched; no digits, or more than an int64 holds, are 0, which is unknown.
func number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
