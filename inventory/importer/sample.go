package importer

import (
	"bytes"
	_ "embed" // the sample is part of the program
	"fmt"

	"allocator/inventory"
)

//go:embed sample/hetzner.json
var sample []byte

// Sample is a small real inventory for a first look: a hundred machines of Hetzner's auction at three sites, all ready.
// Where they come from is told in sample/PROVENANCE.md. Each call gives servers of its own.
func Sample() ([]inventory.Server, error) {
	servers, err := Hetzner{Currency: "EUR", State: inventory.StateReady}.Read(bytes.NewReader(sample))
	if err != nil {
		return nil, fmt.Errorf("read the sample: %w", err)
	}
	return servers, nil
}
