package bench

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// raceDetector is set where the race detector watches, which slows this process down and the database not.
var raceDetector bool

// tries is how often a run may come out badly before the test believes it: this machine may be busy with other things.
const tries = 4

// What a change may not fall below: half of what docs/performance.md aims at.
func TestRatiosStayAboveHalfOfTheirTargets(t *testing.T) { //nolint:paralleltest // others beside it would be measured as well
	if raceDetector {
		t.Skip("skipped: the race detector slows the service down and the database not, so their ratio says nothing; .ci/run takes this test without it")
	}
	asTheProgram(t)
	ctx := t.Context()
	url, stop, err := OwnDatabase(ctx, "", false)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stop(context.WithoutCancel(ctx))) })

	var missed []string
	for range tries {
		report, err := Run(ctx, url, Options{
			Servers: []int{4000}, Stocks: []Stock{AllFree}, Callers: []int{8}, Duration: 200 * time.Millisecond, Repetitions: 5,
			Only: []string{"limit", "reserve", "http", "convert", "refuse"}, MaxConns: 8, Seed: 1,
		})
		require.NoError(t, err)
		missed = belowHalf(report)
		t.Logf("in process %+v, over HTTP %+v, sales %+v, a refusal's processor time %+v", *report.ratio("reserve", 0, 0),
			*report.ratio("http", 0, 0), *report.ratio("convert", 0, 0), *report.cpuRatio("refuse"))
		if len(missed) == 0 {
			return
		}
		t.Logf("missed: %v", missed)
	}
	require.Empty(t, missed, "every time")
}

// What lies in the tables of the past costs a request of today nothing: with many ended reservations, their events and
// decisions, the ratios stay at 0.8 of those without, or within their spread.
func TestRatiosStayBesideAHistory(t *testing.T) { //nolint:paralleltest // others beside it would be measured as well
	if raceDetector {
		t.Skip("skipped: the race detector slows the service down and the database not, so their ratio says nothing; .ci/run takes this test without it")
	}
	asTheProgram(t)
	ctx := t.Context()
	var missed []string
	for range tries {
		url, stop, err := OwnDatabase(ctx, "", false)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, stop(context.WithoutCancel(ctx))) })
		report, err := Run(ctx, url, Options{
			Servers: []int{4000}, Stocks: []Stock{AllFree}, Callers: []int{8}, Duration: 200 * time.Millisecond, Repetitions: 7,
			Only: []string{"limit", "reserve", "http", "convert"}, History: 200_000, MaxConns: 8, Seed: 1,
		})
		require.NoError(t, err)
		missed = nil
		for _, target := range report.targets() {
			if strings.Contains(target.What, "beside a history") && !target.Met {
				missed = append(missed, fmt.Sprintf("%s: seen %+v", target.What, target.Seen))
			}
		}
		if len(missed) == 0 {
			return
		}
		t.Logf("missed: %v", missed)
	}
	require.Empty(t, missed, "every time")
}

// asTheProgram collects garbage as seldom as the program does (gcPercent in cmd/allocator).
func asTheProgram(t *testing.T) {
	t.Helper()
	before := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

// belowHalf is what of a report is below half of its target.
func belowHalf(r *Report) []string {
	var missed []string
	for _, least := range []struct {
		name string
		half float64
		seen *Spread
	}{
		{"reservations in process, of the limit", 0.60 / 2, r.ratio("reserve", 0, 0)},
		{"reservations over HTTP, of the limit", 0.45 / 2, r.ratio("http", 0, 0)},
		{"sales of held servers, of the limit", 0.50 / 2, r.ratio("convert", 0, 0)},
		{"processor time of a reservation, of a refusal", 1.0 / 3 / 2, inverse(r.cpuRatio("refuse"))},
	} {
		if least.seen == nil || least.seen.Median < least.half {
			missed = append(missed, fmt.Sprintf("%s: at least %.2f, seen %+v", least.name, least.half, least.seen))
		}
	}
	return missed
}
