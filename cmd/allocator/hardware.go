package main

import (
	"cmp"
	"fmt"
	"strings"

	"allocator/client"
)

// serverName names a server as people do: by its name, and where it stands.
func serverName(s client.ReservedServer) string { return cmp.Or(s.Name, s.ID) + " in " + s.Site }

// hardware describes a server in one line; what is unknown is left out.
func hardware(s client.ReservedServer) string {
	var parts []string
	add := func(part string) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	add(s.Manufacturer + " " + s.Model)
	add(processors(s.CPU))
	add(memory(s.Memory))
	for _, d := range s.Drives {
		add(strings.TrimSpace(fmt.Sprintf("%d x %d GB %s %s", d.Count, d.NominalGb, d.Interface, d.Medium)))
	}
	for _, g := range s.Gpus {
		add(fmt.Sprintf("%d x %s", g.Count, cmp.Or(g.Model, "GPU")))
	}
	if s.Rack != "" {
		add("rack " + s.Rack)
	}
	if s.Price.Amount != "" {
		add(s.Price.Amount + " " + s.Price.Currency + " a month")
	}
	return strings.Join(parts, ", ")
}

func processors(c client.CPU) string {
	text := strings.TrimSpace(c.Vendor + " " + c.Model)
	if c.Sockets > 1 {
		text = fmt.Sprintf("%d x %s", c.Sockets, cmp.Or(text, "CPU"))
	}
	if c.Cores > 0 {
		text += fmt.Sprintf(" (%d cores)", c.Cores)
	}
	return text
}

func memory(m client.Memory) string {
	if m.Mib == 0 {
		return ""
	}
	text := mebibytes(m.Mib) + " " + m.Type
	if m.Ecc != nil && *m.Ecc {
		text = strings.TrimSpace(text) + " ECC"
	}
	return text
}

func mebibytes(mib int64) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%d GiB", mib/1024)
	}
	return fmt.Sprintf("%d MiB", mib)
}
