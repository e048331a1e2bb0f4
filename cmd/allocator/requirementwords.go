package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"allocator/client"
)

// requirementWords says what was asked, from the frozen JSON. What this release does not know is shown as it stands.
func requirementWords(frozen json.RawMessage) string {
	wanted, err := parseRequirements(frozen)
	if err != nil {
		return string(frozen)
	}
	words := wantedWords(wanted)
	if len(words) == 0 {
		return "any server"
	}
	return strings.Join(words, "; ")
}

// wantedWords gives one short phrase per requirement.
func wantedWords(r client.Requirements) []string {
	w := &phrases{}
	w.list("site %s", r.Sites)
	w.list("not site %s", r.ExcludeSites)
	w.list("rack %s", r.Racks)
	w.list("made by %s", r.Manufacturers)
	w.list("model %s", r.Models)
	w.list("server %s", r.Servers)
	w.list("CPU by %s", r.CPU.Vendors)
	w.list("CPU %s", r.CPU.Models)
	w.number("at least %d sockets", r.CPU.SocketsMin)
	w.number("at least %d cores", r.CPU.CoresMin)
	w.number("at least %d threads", r.CPU.ThreadsMin)
	w.number("at least %d in "+strings.ReplaceAll(r.CPU.BenchmarkMin.Name, "%", "%%"), r.CPU.BenchmarkMin.Score)
	if r.Memory.MibMin > 0 {
		w.addf("at least %s of memory", mebibytes(r.Memory.MibMin))
	}
	if r.Memory.Ecc != nil {
		w.addf("%s", map[bool]string{true: "memory with ECC", false: "memory without ECC"}[*r.Memory.Ecc])
	}
	w.list("memory of type %s", r.Memory.Types)
	for _, d := range r.Drives {
		w.addf("%s", driveWords(d))
	}
	if r.Raid != "" {
		w.addf("%s RAID", string(r.Raid))
	}
	if r.Gpu != nil {
		w.addf("at least %d GPU %s", max(1, r.Gpu.CountMin), strings.Join(r.Gpu.Models, " or "))
	}
	w.number("an uplink of %d Mbit/s", r.Network.UplinkMbpsMin)
	switch {
	case r.Price.MonthlyMax != "":
		w.addf("at most %s %s a month", r.Price.MonthlyMax, r.Price.Currency)
	case r.Price.Currency != "":
		w.addf("priced in %s", r.Price.Currency)
	}
	w.list("all tags of %s", r.TagsAll)
	w.list("no tag of %s", r.TagsNone)
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		w.addf("%s = %s", name, r.Attributes[name])
	}
	return *w
}

func driveWords(d client.DriveRequirement) string {
	kind := strings.TrimSpace(d.Interface + " " + string(d.Medium))
	if kind == "" {
		kind = "drive"
	}
	text := fmt.Sprintf("%d x %s", max(1, d.CountMin), kind)
	if d.NominalGbMin > 0 {
		text += fmt.Sprintf(" of at least %d GB", d.NominalGbMin)
	}
	return text
}

// phrases collects what is asked for; what is not asked adds nothing.
type phrases []string

func (w *phrases) addf(format string, args ...any) {
	*w = append(*w, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (w *phrases) list(format string, values []string) {
	if len(values) > 0 {
		w.addf(format, strings.Join(values, " or "))
	}
}

func (w *phrases) number(format string, n int64) {
	if n > 0 {
		w.addf(format, n)
	}
}
