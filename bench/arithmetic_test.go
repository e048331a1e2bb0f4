package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		values []float64
		want   Spread
	}{
		"nothing was measured":                    {nil, Spread{}},
		"one round":                               {[]float64{3}, Spread{3, 3, 3}},
		"an odd number: the middle one":           {[]float64{9, 1, 2}, Spread{2, 1, 9}},
		"an even number: between the middle ones": {[]float64{4, 1, 9, 2}, Spread{3, 1, 9}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, spreadOf(tt.values))
		})
	}
}

// A ratio is taken within its round: a machine that is slower in the second half of a run changes none.
func TestRatiosArePaired(t *testing.T) {
	t.Parallel()
	round := func(done int) *measure { return &measure{done: done, elapsed: time.Second} }
	base := []*measure{round(1000), round(500), round(100)}
	ours := []*measure{round(600), round(300), round(60)}
	require.Equal(t, Spread{0.6, 0.6, 0.6}, paired(ours, base, (*measure).perSecond))
	require.Equal(t, Spread{1, 1, 1}, paired(base, base, (*measure).perSecond))
	require.Equal(t, Spread{}, paired(ours, []*measure{round(0)}, (*measure).perSecond), "without a base there is no ratio")
}

func TestPercentilesAreOfAllRounds(t *testing.T) {
	t.Parallel()
	var slow, fast measure
	for i := range 50 {
		fast.latencies = append(fast.latencies, time.Duration(i+1)*time.Millisecond)
		slow.latencies = append(slow.latencies, time.Duration(i+51)*time.Millisecond)
	}
	rounds := []*measure{&slow, &fast}
	require.Equal(t, 51*time.Millisecond, percentile(rounds, 0.50))
	require.Equal(t, 100*time.Millisecond, percentile(rounds, 0.99))
	require.Zero(t, percentile(nil, 0.5))
}

// Refused operations cost as well, and are counted where cost is told; throughput is of what was done.
func TestCostIsOfWhateverWasAsked(t *testing.T) {
	t.Parallel()
	m := &measure{done: 3, refused: 1, elapsed: time.Second, server: 4 * time.Second, client: 8 * time.Second, wal: 400}
	require.InDelta(t, 3, m.perSecond(), 0)
	require.InDelta(t, 1, m.serverEach(), 0)
	require.InDelta(t, 3, m.cpuEach(), 0)
	require.InDelta(t, 100, m.walEach(), 0)
	require.Zero(t, (&measure{}).cpuEach())
}

func TestTraceIsRead(t *testing.T) {
	t.Parallel()
	at, err := arrivals("1b\n2b1g 3k", 1, 1)
	require.NoError(t, err)
	var seen []string
	for _, a := range at {
		seen = append(seen, a.class.name)
	}
	b, g, k := classOf('b').name, classOf('g').name, classOf('k').name
	require.Equal(t, []string{b, b, g, k, k, k}, seen)
	require.Zero(t, at[2].at, "a batch comes at once")
	require.Equal(t, 500*time.Millisecond, at[3].at, "batches are spread over their second")

	again, err := arrivals("1b\n2b1g 3k", 1, 2)
	require.NoError(t, err)
	require.Len(t, again, 7, "after the last bin comes the first")

	for _, broken := range []string{"b", "3", "3b2", "b3"} {
		_, err := arrivals(broken, 0, 1)
		require.Error(t, err, broken)
	}
	_, err = arrivals(azureTrace, 0, 240)
	require.NoError(t, err, "the one that is part of the program")
}

// The shares by which classes are drawn are those of the trace.
func TestSharesAreThoseOfTheTrace(t *testing.T) {
	t.Parallel()
	at, err := arrivals(azureTrace, 0, 240)
	require.NoError(t, err)
	seen, sum := map[*class]int{}, 0
	for _, a := range at {
		seen[a.class]++
	}
	for i := range classes {
		sum += classes[i].share
		require.InDelta(t, float64(seen[&classes[i]])/float64(len(at)), float64(classes[i].share)/1000, 0.002, classes[i].name)
	}
	require.Equal(t, 1000, sum)
}

// Equal seeds make equal stocks, and no two servers of one have the same identity.
func TestStocksDependOnTheSeedAlone(t *testing.T) {
	t.Parallel()
	first, err := newInventory(1500, 7)
	require.NoError(t, err)
	again, err := newInventory(1500, 7)
	require.NoError(t, err)
	other, err := newInventory(1500, 8)
	require.NoError(t, err)
	require.Equal(t, first.free, again.free)
	require.NotEqual(t, first.free, other.free)
	names := map[any]bool{}
	for i := range first.ids {
		row := first.row(i)
		require.Equal(t, row, again.row(i))
		require.EqualValues(t, 7, first.ids[i].Version())
		names[row[3]] = true
	}
	require.Len(t, names, 1500)
}

func TestNamesThatAreNotThereAreRefused(t *testing.T) {
	t.Parallel()
	o := Options{
		Servers: []int{1}, Stocks: Stocks(), Callers: []int{1}, Duration: time.Second, Repetitions: 1, Only: []string{"limit", "speed"},
	}
	require.EqualError(t, o.Check(), `there is nothing called "speed" to measure: choose of `+strings.Join(Names(), ", "))
	o.Only = Names()
	require.NoError(t, o.Check())
}

func TestTargetsAreJudged(t *testing.T) {
	t.Parallel()
	r := &Report{
		Tables: []Table{
			{Servers: 10_000, Stock: AllFree, Callers: 8, History: 5, Rows: []Row{{Name: "limit"}, {Name: "reserve", Ratio: Spread{0.1, 0.1, 0.1}}}},
			{Servers: 10_000, Stock: AllFree, Callers: 8, History: 5, Rows: []Row{{Name: "limit"}, {Name: "convert", Ratio: Spread{0.3, 0.2, 0.4}}}},
			{Servers: 10_000, Stock: AllFree, Callers: 8, Rows: []Row{{Name: "limit"}, {Name: "convert", Ratio: Spread{0.5, 0.3, 0.6}}}},
			{Servers: 10_000, Stock: AllFree, Callers: 8, Rows: []Row{
				{Name: "limit"}, {Name: "reserve", Ratio: Spread{0.7, 0.5, 0.9}}, {Name: "http", Ratio: Spread{0.44, 0.4, 0.5}},
			}},
			{Servers: 1_000_000, Stock: AllFree, Callers: 8, Rows: []Row{{Name: "limit"}, {Name: "reserve", Ratio: Spread{0.35, 0.3, 0.4}}}},
			{Servers: 10_000, Stock: AllFree, Callers: 8, Rows: []Row{{Name: "select-1"}, {Name: "capacity", Ratio: Spread{0.2, 0.1, 0.25}}}},
		},
		Figures: []Figure{
			{ID: "memory", Servers: 10_000, Value: Spread{500, 400, 600}},
			{ID: "memory", Servers: 100_000, Value: Spread{300, 300, 300}},
		},
	}
	met := map[string]bool{}
	for _, target := range r.targets() {
		if target.Found {
			met[target.What] = target.Met
		}
	}
	require.Equal(t, map[string]bool{
		"reservations in process, 10000 servers, 8 callers, of the limit":      true,
		"reservations over HTTP, 10000 servers, 8 callers, of the limit":       false,
		"reservations with 1M servers, of those with 10k, both of their limit": false,
		"memory of the catalog for each server of the largest inventory":       true,
		"capacity by site and model, of SELECT 1 over HTTP":                    true,

		"reservations in process beside a history, of those without, both of their limit": false,
		"sales beside a history, of those without, both of their limit":                   true, // within the spread
		"sales of held servers, of the limit":                                             true,
	}, met)
}

func TestLargeInventoriesBesideOthersAreMeasuredInPart(t *testing.T) {
	t.Parallel()
	r := &run{Options: &Options{}, large: true}
	for _, name := range ofLarge {
		require.Contains(t, Names(), name)
		require.True(t, r.wants(name))
	}
	require.False(t, r.wants("http"), "it would read a catalog of its own")
	r.Only = []string{"limit"}
	require.False(t, r.wants("start"), "nobody asks for it")
	r.large, r.Only = false, nil
	require.True(t, r.wants("http"))
}
