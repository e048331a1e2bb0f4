package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"

	"allocator/client"
)

// requirementFlags say what an order asks for; evaluate and reserve take them.
type requirementFlags struct {
	File string `name:"requirements" group:"wanted" placeholder:"FILE" help:"Everything from a JSON file instead of the flags below; - is standard input."`

	Sites         []string `name:"site" group:"wanted" sep:"none" placeholder:"SITE" help:"One of these sites, compared exactly as written; repeat it."`
	ExcludeSites  []string `name:"exclude-site" group:"wanted" sep:"none" placeholder:"SITE" help:"None of these sites, compared exactly."`
	Racks         []string `name:"rack" group:"wanted" sep:"none" placeholder:"RACK" help:"One of these racks, compared exactly."`
	Manufacturers []string `name:"manufacturer" group:"wanted" sep:"none" placeholder:"NAME" help:"One of these manufacturers, compared exactly."`
	Models        []string `name:"model" group:"wanted" sep:"none" placeholder:"NAME" help:"One of these models, compared exactly."`
	Servers       []string `name:"server" group:"wanted" sep:"none" placeholder:"ID" help:"One of these servers, srv_…"`

	CPUVendors []string `name:"cpu-vendor" group:"wanted" sep:"none" placeholder:"NAME" help:"One of these vendors, compared exactly."`
	CPUModels  []string `name:"cpu-model" group:"wanted" sep:"none" placeholder:"NAME" help:"One of these processors, compared exactly."`
	Sockets    int64    `name:"sockets" group:"wanted" placeholder:"N" help:"At least so many sockets."`
	Cores      int64    `name:"cores" group:"wanted" placeholder:"N" help:"At least so many cores, over all sockets."`
	Threads    int64    `name:"threads" group:"wanted" placeholder:"N" help:"At least so many threads, over all sockets."`
	Benchmark  string   `name:"benchmark" group:"wanted" placeholder:"NAME=SCORE" help:"At least this score, such as passmark=20000."`

	MemoryGiB   int64    `name:"memory-gib" group:"wanted" placeholder:"N" help:"At least so many GiB of memory."`
	MemoryMiB   int64    `name:"memory-mib" group:"wanted" placeholder:"N" help:"At least so many MiB of memory."`
	ECC         *bool    `name:"ecc" group:"wanted" negatable:"" help:"Memory with error correction, or without."`
	MemoryTypes []string `name:"memory-type" group:"wanted" sep:"none" placeholder:"TYPE" help:"One of these types, such as DDR5, compared exactly."`

	Drives []string `name:"drive" group:"wanted" sep:"none" placeholder:"DRIVES" help:"Drives of at least a size, such as 2x960GB,nvme,ssd; repeat it for other drives beside these."`
	RAID   string   `name:"raid" group:"wanted" placeholder:"KIND" help:"none, software or hardware."`
	GPU    string   `name:"gpu" group:"wanted" placeholder:"GPUS" help:"Graphics processors, such as 2 or 2xA100."`
	Uplink int64    `name:"uplink-mbps" group:"wanted" placeholder:"N" help:"At least this uplink."`

	PriceMax   string            `name:"price-max" group:"wanted" placeholder:"PRICE" help:"At most this price each month, such as \"80.00 EUR\"."`
	Currency   string            `name:"currency" group:"wanted" placeholder:"CODE" help:"Only servers priced in this currency."`
	Tags       []string          `name:"tag" group:"wanted" sep:"none" placeholder:"TAG" help:"All of these tags, compared exactly."`
	TagsNone   []string          `name:"exclude-tag" group:"wanted" sep:"none" placeholder:"TAG" help:"None of these tags, compared exactly."`
	Attributes map[string]string `name:"attribute" group:"wanted" mapsep:"none" placeholder:"NAME=VALUE" help:"Exactly this attribute."`
}

// requirements turns the flags, or the file, into what the service is asked.
func (f *requirementFlags) requirements(stdin io.Reader) (client.Requirements, error) {
	if f.File == "" {
		return f.fromFlags()
	}
	if !reflect.DeepEqual(*f, requirementFlags{File: f.File}) {
		return client.Requirements{}, usagef("--requirements and the flags of single requirements exclude each other: put everything into the file")
	}
	content, err := readFileOr(stdin, f.File)
	if err != nil {
		return client.Requirements{}, usagef("the requirements cannot be read: %v", err)
	}
	return parseRequirements(content)
}

// fromFlags collects every mistake before it says so.
func (f *requirementFlags) fromFlags() (client.Requirements, error) {
	wanted := client.Requirements{
		Sites: f.Sites, ExcludeSites: f.ExcludeSites, Racks: f.Racks, Manufacturers: f.Manufacturers, Models: f.Models, Servers: f.Servers,
		CPU: client.CPURequirements{
			Vendors: f.CPUVendors, Models: f.CPUModels, SocketsMin: f.Sockets, CoresMin: f.Cores, ThreadsMin: f.Threads,
		},
		Memory:  client.MemoryRequirements{MibMin: f.MemoryMiB, Ecc: f.ECC, Types: f.MemoryTypes},
		Raid:    client.RequirementsRaid(f.RAID),
		Network: client.NetworkRequirements{UplinkMbpsMin: f.Uplink},
		TagsAll: f.Tags, TagsNone: f.TagsNone, Attributes: f.Attributes,
	}
	var wrong []error
	note := func(err error) { wrong = append(wrong, err) }

	if f.MemoryGiB != 0 {
		if f.MemoryMiB != 0 {
			note(errors.New("--memory-gib and --memory-mib say the same: leave one out"))
		}
		wanted.Memory.MibMin = f.MemoryGiB * 1024
	}
	var err error
	wanted.CPU.BenchmarkMin, err = parseBenchmark(f.Benchmark)
	note(err)
	for _, text := range f.Drives {
		group, err := parseDrives(text)
		note(err)
		wanted.Drives = append(wanted.Drives, group)
	}
	wanted.Gpu, err = parseGPU(f.GPU)
	note(err)
	wanted.Price, err = parsePriceLimit(f.PriceMax, f.Currency)
	note(err)
	if err := errors.Join(wrong...); err != nil {
		return wanted, &usageError{err.Error()}
	}
	return wanted, nil
}

// parseRequirements reads the JSON form. An unknown name is refused here, because the service would never see it.
func parseRequirements(content []byte) (client.Requirements, error) {
	var wanted client.Requirements
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil {
		return wanted, usagef("the requirements are no JSON object as the API takes it: %v", err)
	}
	if decoder.More() {
		return wanted, usagef("something stands behind the JSON object of the requirements")
	}
	return wanted, nil
}

func readFileOr(stdin io.Reader, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}

// positive reads a whole number from 1.
func positive(text, of string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s must be a whole number from 1, not %q", of, text)
	}
	return n, nil
}
