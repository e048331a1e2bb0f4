package bench

import (
	"slices"
	"time"
)

// Spread is what several rounds came to.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf returns zeros for no values.
func spreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// across takes one figure of each round.
func across(rounds []*measure, figure func(m *measure) float64) Spread {
	values := make([]float64, len(rounds))
	for i, m := range rounds {
		values[i] = figure(m)
	}
	return spreadOf(values)
}

// paired divides one figure by that of the same round of another contender.
func paired(rounds, base []*measure, figure func(m *measure) float64) Spread {
	var values []float64
	for i, m := range rounds {
		if i == len(base) {
			break
		}
		if b := figure(base[i]); b > 0 {
			values = append(values, figure(m)/b)
		}
	}
	return spreadOf(values)
}

// percentile of all latencies of all rounds, 0 without any.
func percentile(rounds []*measure, p float64) time.Duration {
	var all []time.Duration
	for _, m := range rounds {
		all = append(all, m.latencies...)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(p*float64(len(all))))]
}

// each divides by the number of operations, refused ones included: they cost as well.
func (m *measure) each(total float64) float64 {
	if n := m.done + m.refused; n > 0 {
		return total / float64(n)
	}
	return 0
}

func (m *measure) serverEach() float64 { return m.each(m.server.Seconds()) }
func (m *measure) clientEach() float64 { return m.each(m.client.Seconds()) }
func (m *measure) cpuEach() float64    { return m.each((m.server + m.client).Seconds()) }
func (m *measure) walEach() float64    { return m.each(float64(m.wal)) }
