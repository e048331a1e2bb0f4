package bench

import "time"

// Report is what a run came to. Times are in seconds, sizes in bytes.
type Report struct {
	Machine  Machine   `json:"machine"`
	Settings []Setting `json:"settings"`
	Tables   []Table   `json:"tables"`
	Figures  []Figure  `json:"figures,omitempty"`
	Targets  []Target  `json:"targets"`
	Notes    []string  `json:"notes,omitempty"`   // what was not measured, and why
	Stopped  bool      `json:"stopped,omitempty"` // before its end, by the caller
}

// Setting is one setting of the database.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Table compares contenders that took turns on one stock.
type Table struct {
	Name    string `json:"name"`
	Servers int    `json:"servers"`
	Stock   Stock  `json:"stock"`
	Callers int    `json:"callers"`
	Rounds  int    `json:"rounds"`
	History int    `json:"history,omitempty"` // ended reservations of the past that lie in the tables
	Rows    []Row  `json:"rows"`
}

// Row is one contender. Ratios are to the table's first row, round by round.
type Row struct {
	Name      string        `json:"name"`
	PerSecond Spread        `json:"per_second"`
	Ratio     Spread        `json:"ratio"`
	CPURatio  Spread        `json:"cpu_ratio"`
	CPU       Spread        `json:"cpu"` // of the database's processes and of this one, for one operation
	Server    Spread        `json:"server_cpu"`
	Client    Spread        `json:"client_cpu"`
	WAL       Spread        `json:"wal_bytes"`
	P50       time.Duration `json:"p50_ns"`
	P95       time.Duration `json:"p95_ns"`
	P99       time.Duration `json:"p99_ns"`
	Done      int           `json:"done"`
	Refused   int           `json:"refused"`
	Trips     *Trips        `json:"trips,omitempty"`

	Statements []Statement `json:"statements,omitempty"`
}

// row sums up the rounds of one contender beside those of the table's first.
func row(name string, rounds, base []*measure) Row {
	r := Row{
		Name:      name,
		PerSecond: across(rounds, (*measure).perSecond),
		Ratio:     paired(rounds, base, (*measure).perSecond),
		CPURatio:  paired(rounds, base, (*measure).cpuEach),
		CPU:       across(rounds, (*measure).cpuEach),
		Server:    across(rounds, (*measure).serverEach),
		Client:    across(rounds, (*measure).clientEach),
		WAL:       across(rounds, (*measure).walEach),
		P50:       percentile(rounds, 0.50), P95: percentile(rounds, 0.95), P99: percentile(rounds, 0.99),
	}
	for _, m := range rounds {
		r.Done += m.done
		r.Refused += m.refused
	}
	return r
}
