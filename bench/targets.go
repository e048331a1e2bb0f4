package bench

import (
	"fmt"
	"slices"
)

// Target is a figure that was promised, beside the one that was measured.
type Target struct {
	What   string  `json:"what"`
	Wanted float64 `json:"wanted"`
	AtMost bool    `json:"at_most"` // Wanted is a ceiling; else it is a floor
	Unit   string  `json:"unit,omitempty"`
	Seen   Spread  `json:"seen"`
	Found  bool    `json:"found"` // this run has measured it
	Met    bool    `json:"met"`   // its median
}

// targets holds every promise against what the report has of it.
func (r *Report) targets() []Target {
	var all []Target
	for _, n := range []int{10_000, 100_000} {
		for _, callers := range []int{8, 32} {
			all = append(all,
				floor(fmt.Sprintf("reservations in process, %d servers, %d callers, of the limit", n, callers), 0.60,
					r.ratio("reserve", n, callers)),
				floor(fmt.Sprintf("reservations over HTTP, %d servers, %d callers, of the limit", n, callers), 0.45,
					r.ratio("http", n, callers)))
		}
	}
	return append(all,
		r.withPast("reserve", "reservations in process"),
		r.withPast("http", "reservations over HTTP"),
		r.withPast("convert", "sales"),
		floor("reservations with 1M servers, of those with 10k, both of their limit", 0.9,
			r.quotient(func(row *Row) Spread { return row.Ratio }, 1_000_000, 10_000)),
		ceiling("processor time of a reservation with 100k servers, of one with 1k", 1.3, "",
			r.quotient(func(row *Row) Spread { return row.CPU }, 100_000, 1000)),
		floor("sales of held servers, of the limit", 0.5, r.ratio("convert", 0, 0)),
		ceiling("processor time of a refusal, of a reservation", 3, "", r.cpuRatio("refuse", 0)),
		ceiling("memory of the catalog for each server of the largest inventory", 400, "B", r.figure("memory", r.largest("memory"), false)),
		ceiling("start with 1M servers, of reading their rows", 3, "", r.figure("start", 1_000_000, true)),
		ceiling("evaluation in full of 100k servers", 0.5, "s", r.figure("evaluate", 100_000, false)),
		ceiling("evaluation in full of 100k servers over HTTP", 0.5, "s", r.figure("evaluate-http", 100_000, false)),
		ceiling("capacity by site and model, of SELECT 1 over HTTP", 10, "", inverse(r.ratio("capacity", 0, 0))),
		floor("a lock through the door for clients of Redis, of plain SQL", 0.5, r.ratio("redis-door", 0, 0)),
		ceiling("who edits, with 100 leases, of SELECT 1", 3, "", inverse(r.ratio("presence", 0, 0))),
		floor("a lock in Redis, of the client library alone", 0.8, r.ratio("lock-redis", 0, 0)),
	)
}

// leastWithPast is what a ratio may come to beside a history, of what it is without.
const leastWithPast = 0.8

// withPast compares what came of a contender beside a history with what came of it without one, each of its limit. A
// difference within the spread of the run without is none.
func (r *Report) withPast(name, what string) Target {
	var seen *Spread
	within := false
	for i := range r.Tables {
		t := &r.Tables[i]
		past, without := t.find(name), r.row(name, t.Servers, t.Callers)
		if t.Stock != AllFree || t.History == 0 || past == nil || without == nil || without.Ratio.Min <= 0 {
			continue
		}
		p, w := past.Ratio, without.Ratio
		seen, within = &Spread{Median: p.Median / w.Median, Min: p.Min / w.Max, Max: p.Max / w.Min}, p.Median >= w.Min
		break
	}
	target := floor(what+" beside a history, of those without, both of their limit", leastWithPast, seen)
	target.Met = target.Met || within
	return target
}

func floor(what string, wanted float64, seen *Spread) Target {
	t := Target{What: what, Wanted: wanted, Found: seen != nil}
	if seen != nil {
		t.Seen, t.Met = *seen, seen.Median >= wanted
	}
	return t
}

func ceiling(what string, wanted float64, unit string, seen *Spread) Target {
	t := Target{What: what, Wanted: wanted, AtMost: true, Unit: unit, Found: seen != nil}
	if seen != nil {
		t.Seen, t.Met = *seen, seen.Median <= wanted
	}
	return t
}

// row finds the first row of that name measured on an all free stock without a history; 0 stands for any number.
func (r *Report) row(name string, servers, callers int) *Row {
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.Stock != AllFree || t.History > 0 || servers > 0 && t.Servers != servers || callers > 0 && t.Callers != callers {
			continue
		}
		if row := t.find(name); row != nil {
			return row
		}
	}
	return nil
}

// find gives a contender's row; nil if there is none or it is the first, with which the others are compared.
func (t *Table) find(name string) *Row {
	if k := slices.IndexFunc(t.Rows, func(row Row) bool { return row.Name == name }); k > 0 {
		return &t.Rows[k]
	}
	return nil
}

func (r *Report) ratio(name string, servers, callers int) *Spread {
	if row := r.row(name, servers, callers); row != nil {
		return &row.Ratio
	}
	return nil
}

func (r *Report) cpuRatio(name string, servers int) *Spread {
	if row := r.row(name, servers, 0); row != nil {
		return &row.CPURatio
	}
	return nil
}

// quotient divides a figure of reservations with one number of servers by that with another.
func (r *Report) quotient(figure func(row *Row) Spread, of, by int) *Spread {
	above, below := r.row("reserve", of, 0), r.row("reserve", by, 0)
	if above == nil || below == nil || figure(below).Min <= 0 {
		return nil
	}
	a, b := figure(above), figure(below)
	return &Spread{Median: a.Median / b.Median, Min: a.Min / b.Max, Max: a.Max / b.Min}
}

// figure is a value, or its ratio to what it is compared with.
func (r *Report) figure(id string, servers int, ratio bool) *Spread {
	for i := range r.Figures {
		f := &r.Figures[i]
		if f.ID != id || servers > 0 && f.Servers != servers {
			continue
		}
		if ratio {
			return &f.Ratio
		}
		return &f.Value
	}
	return nil
}

// largest is the size of the largest inventory that the figure was taken of.
func (r *Report) largest(id string) (servers int) {
	for _, f := range r.Figures {
		if f.ID == id {
			servers = max(servers, f.Servers)
		}
	}
	return servers
}

func inverse(s *Spread) *Spread {
	if s == nil || s.Min <= 0 {
		return nil
	}
	return &Spread{Median: 1 / s.Median, Min: 1 / s.Max, Max: 1 / s.Min}
}
