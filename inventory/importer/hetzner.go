package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"allocator/inventory"
)

// SourceHetzner is the source of servers that come from Hetzner's feed.
const SourceHetzner = "hetzner"

// Hetzner says what the feed of Hetzner's server auction does not: it carries neither a currency, which is part of its
// address, nor a state, since all of its machines are on offer.
type Hetzner struct {
	Currency string // ISO 4217, three capitals
	State    inventory.State
}

// hetznerFeed and hetznerRow are what is read of the feed; one row is one machine.
type hetznerFeed struct {
	Server []hetznerRow `json:"server"`
}

type hetznerRow struct {
	ID          int64        `json:"id"`
	Information []string     `json:"information"` // one line per kind of module, drive or card
	CPU         string       `json:"cpu"`
	CPUCount    int64        `json:"cpu_count"`
	RAM         []string     `json:"ram"`
	RAMSize     int64        `json:"ram_size"` // GB of 1024 MB of 1024² bytes
	IsECC       bool         `json:"is_ecc"`
	Disks       hetznerDisks `json:"serverDiskData"` //nolint:tagliatelle // the feed's own word
	Datacenter  string       `json:"datacenter"`     // site and hall: "FSN1-DC1"
	Specials    []string     `json:"specials"`
	Price       json.Number  `json:"price"` // each month
}

// hetznerDisks are the nominal sizes in GB, one for each drive; SATA drives that are no hard disks are SSDs. The feed's
// hdd_size and hdd_count are of one kind of drive and wrong for machines with several, so they are not read.
type hetznerDisks struct {
	NVMe []int64 `json:"nvme"`
	SATA []int64 `json:"sata"`
	HDD  []int64 `json:"hdd"`
}

// RowError is what is wrong with one row; it wraps the reason.
type RowError struct {
	Row        int    // from 0
	ExternalID string // as the row has it
	Err        error
}

// Error implements error.
func (e *RowError) Error() string {
	return fmt.Sprintf("row %d (id %s): %v", e.Row, e.ExternalID, e.Err)
}

// Unwrap gives the reason.
func (e *RowError) Unwrap() error { return e.Err }

// Read reads the whole feed. Either every row becomes a server or the error joins a RowError for each that cannot; a
// record that is complete but breaks a limit has an inventory.InvalidError in it.
func (h Hetzner) Read(feed io.Reader) ([]inventory.Server, error) {
	var content hetznerFeed
	text, err := io.ReadAll(feed)
	if err != nil {
		return nil, fmt.Errorf("read the feed: %w", err)
	}
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("this is no feed of Hetzner's auction: %w", err)
	}
	if content.Server == nil {
		return nil, errors.New("this is no feed of Hetzner's auction: it has no list \"server\"")
	}
	servers := make([]inventory.Server, len(content.Server))
	var wrong []error
	for i := range content.Server {
		row := &content.Server[i]
		server, err := h.server(row)
		if err == nil {
			err = server.Validate()
		}
		if err != nil {
			wrong = append(wrong, &RowError{Row: i, ExternalID: row.externalID(), Err: err})
		}
		servers[i] = server
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return servers, nil
}

func (r *hetznerRow) externalID() string { return strconv.FormatInt(r.ID, 10) }

// server maps one row. The feed knows no maker, no model, no cores and no rack; its name is the same for all.
func (h Hetzner) server(row *hetznerRow) (inventory.Server, error) {
	memory, kit, err := row.memory()
	if err != nil {
		return inventory.Server{}, err
	}
	drives, err := row.drives()
	if err != nil {
		return inventory.Server{}, err
	}
	price, err := row.price(h.Currency)
	if err != nil {
		return inventory.Server{}, err
	}
	site, _, _ := strings.Cut(row.Datacenter, "-")
	vendor, model := cpuName(row.CPU)
	uplink, nic := row.uplink()
	s := inventory.Server{
		Source:     SourceHetzner,
		ExternalID: row.externalID(),
		Name:       "sb-" + row.externalID(), // the feed has no names, and people need one to speak of a machine
		Site:       site,
		CPU:        inventory.CPU{Vendor: vendor, Model: model, Sockets: row.CPUCount},
		Memory:     memory,
		Drives:     drives,
		RAID:       row.raid(),
		GPUs:       row.gpus(),
		UplinkMbps: uplink,
		Price:      price,
		Attributes: known(map[string]string{"datacenter": row.Datacenter, "memory_kit": kit, "nic": nic}),
		State:      h.State,
	}
	if len(row.RAM) > 1 {
		s.Tags = []string{"mixed-memory-kit"}
	}
	return s, nil
}

// price is nil where the row has none.
func (r *hetznerRow) price(currency string) (price *inventory.Price, err error) {
	if r.Price != "" {
		price = &inventory.Price{Currency: currency}
		price.Amount, err = inventory.ParseAmount(r.Price.String())
	}
	return price, err
}

// known leaves out the attributes that a row does not have.
func known(attributes map[string]string) map[string]string {
	for name, value := range attributes {
		if value == "" {
			delete(attributes, name)
		}
	}
	return attributes
}
