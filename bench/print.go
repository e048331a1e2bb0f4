package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s, %s, %d cores, %s\n", r.Machine.OS, r.Machine.CPU, r.Machine.Cores, r.Machine.Go)
	var said []string
	for _, s := range r.Settings {
		said = append(said, s.Name+"="+s.Value)
	}
	fmt.Fprintf(w, "PostgreSQL: %s\n", strings.Join(said, ", "))
	for i := range r.Tables {
		r.Tables[i].print(w)
	}
	r.printFigures(w)
	r.printTargets(w)
	for _, note := range r.Notes {
		fmt.Fprintln(w, "\n"+note)
	}
	if r.Stopped {
		fmt.Fprintln(w, "\nStopped before the end: this is what had been measured.")
	}
}

func (r *Report) printFigures(w io.Writer) {
	if len(r.Figures) == 0 {
		return
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "servers\tmeasured\t\tagainst\t\tratio\tspread")
	for _, f := range r.Figures {
		fmt.Fprintf(table, "%d\t%s\t%.4g %s\t", f.Servers, f.Name, f.Value.Median, f.Unit)
		if f.BaseName != "" {
			fmt.Fprintf(table, "%s\t%.4g %s\t%.2f\t%.2f..%.2f", f.BaseName, f.Base.Median, f.Unit, f.Ratio.Median, f.Ratio.Min, f.Ratio.Max)
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
}

// printTargets leaves out what this run did not measure.
func (r *Report) printTargets(w io.Writer) {
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "target\twanted\tmedian\tspread\t")
	for _, t := range r.Targets {
		if !t.Found {
			continue
		}
		wanted, met := "at least", "missed"
		if t.AtMost {
			wanted = "at most"
		}
		if t.Met {
			met = "met"
		}
		fmt.Fprintf(table, "%s\t%s %g %s\t%.3g\t%.3g..%.3g\t%s\n",
			t.What, wanted, t.Wanted, t.Unit, t.Seen.Median, t.Seen.Min, t.Seen.Max, met)
	}
	_ = table.Flush()
}

func (t *Table) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %d servers, %s, ", t.Name, t.Servers, t.Stock)
	if t.History > 0 {
		fmt.Fprintf(w, "%d ended reservations, ", t.History)
	}
	if t.Callers > 0 {
		fmt.Fprintf(w, "%d callers, ", t.Callers)
	}
	fmt.Fprintf(w, "%d rounds\n", t.Rounds)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tper second\tratio\tspread\tserver CPU\tclient CPU\tboth\tWAL\tp50\tp95\tp99\trefused\ttrips\tstatements\t")
	for _, row := range t.Rows {
		trips := "\t\t"
		if row.Trips != nil {
			trips = fmt.Sprintf("%.1f\t%.1f\t", row.Trips.RoundTrips, row.Trips.Statements)
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.2f..%.2f\t%s\t%s\t%.1f\t%.0f B\t%s\t%s\t%s\t%.1f%%\t%s\n",
			row.Name, row.PerSecond.Median, row.Ratio.Median, row.Ratio.Min, row.Ratio.Max,
			micros(row.Server.Median), micros(row.Client.Median), row.CPURatio.Median, row.WAL.Median,
			millis(row.P50), millis(row.P95), millis(row.P99), row.refusedShare(), trips)
	}
	_ = table.Flush()
	for i := range t.Rows {
		t.Rows[i].printStatements(w)
	}
}

// widthOfStatement is how much of a statement's text is shown.
const widthOfStatement = 150

func (r *Row) printStatements(w io.Writer) {
	if len(r.Statements) == 0 {
		return
	}
	fmt.Fprintf(w, "\nStatements of %s, one caller, for one operation:\n", r.Name)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "calls\tplan\trun\tWAL\ttext")
	for _, s := range r.Statements {
		text := s.Text
		if len(text) > widthOfStatement {
			text = text[:widthOfStatement] + "…"
		}
		fmt.Fprintf(table, "%.1f\t%.0f µs\t%.0f µs\t%.0f B\t%s\n", s.Calls, 1000*s.Plan, 1000*s.Run, s.WAL, text)
	}
	_ = table.Flush()
}

func (r *Row) refusedShare() float64 {
	if n := r.Done + r.Refused; n > 0 {
		return 100 * float64(r.Refused) / float64(n)
	}
	return 0
}

func micros(seconds float64) string { return fmt.Sprintf("%.0f µs", seconds*1e6) }

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
