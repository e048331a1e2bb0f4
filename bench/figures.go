package bench

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"allocator/allocation"
)

// Figure is what is measured alone, by one caller.
type Figure struct {
	ID      string `json:"id"` // as it is asked for
	Name    string `json:"name"`
	Servers int    `json:"servers"`
	Unit    string `json:"unit"`
	Value   Spread `json:"value"`
	// Base is what Value is compared with, and Ratio their quotient, taken in pairs; zero where there is nothing to
	// compare with.
	BaseName string `json:"base_name,omitempty"`
	Base     Spread `json:"base"`
	Ratio    Spread `json:"ratio"`
}

// figures measures what has no callers to speak of, each in turn with what it is compared to.
func (r *run) figures(ctx context.Context, w *world) error {
	n := len(w.servers.ids)
	for _, measured := range []struct {
		name    string
		measure func(ctx context.Context, w *world) error
	}{
		{"start", r.measureStart},
		{"evaluate", r.measureEvaluation},
		{"evaluate-http", r.measureEvaluationLines},
		{"memory", r.measureMemory},
	} {
		if !r.wants(measured.name) {
			continue
		}
		r.tell(r.done, r.total, fmt.Sprintf("%d servers: %s", n, measured.name))
		if err := measured.measure(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", measured.name, err)
		}
	}
	return nil
}

// pairs times two things in turns, as often as there are repetitions, after one that does not count.
func (r *run) pairs(ctx context.Context, f Figure, base, do func(ctx context.Context) error) error {
	var values, bases, ratios []float64
	for i := -1; i < r.Repetitions; i++ {
		times := [2]float64{}
		for _, k := range r.random.Perm(2) {
			var err error
			if times[k], err = timed(ctx, [...]func(ctx context.Context) error{do, base}[k]); err != nil {
				return err
			}
		}
		if i >= 0 {
			values, bases, ratios = append(values, times[0]), append(bases, times[1]), append(ratios, times[0]/times[1])
		}
	}
	f.Value, f.Base, f.Ratio = spreadOf(values), spreadOf(bases), spreadOf(ratios)
	r.report.Figures = append(r.report.Figures, f)
	return nil
}

func timed(ctx context.Context, do func(ctx context.Context) error) (float64, error) {
	begin := time.Now()
	err := do(ctx)
	return time.Since(begin).Seconds(), err
}

// newAllocator is one as after a start, that knows nothing yet.
func (w *world) newAllocator() (*allocation.Allocator, error) {
	fresh, err := serve(&world{admin: w.admin, pool: w.pool, servers: w.servers, seed: w.seed, duration: w.duration})
	if err != nil {
		return nil, err
	}
	return fresh.allocator, nil
}

// started is a start up to the first answered request.
func (w *world) started(ctx context.Context) (*allocation.Allocator, error) {
	a, err := w.newAllocator()
	if err == nil {
		_, err = a.Reserve(ctx, w.caller, request("start-"+nextRound(), allocation.Requirements{}))
	}
	return a, err
}

// readAll reads the rows of all servers, in the order in which they lie, and does nothing with them.
func (w *world) readAll(ctx context.Context) error {
	rows, err := w.pool.Query(ctx, `SELECT `+strings.Join(serverColumns[1:], ", ")+`, size, version FROM servers WHERE organization_id = $1`, org)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		_ = rows.RawValues()
	}
	return rows.Err()
}

func (r *run) measureStart(ctx context.Context, w *world) error {
	f := Figure{
		ID: "start", Name: "start until the first answer", Servers: len(w.servers.ids), Unit: "s", BaseName: "reading the same rows",
	}
	err := r.pairs(ctx, f, w.readAll, func(ctx context.Context) error {
		_, err := w.started(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return w.reset(ctx)
}

// measureMemory compares the live heap with and without a catalog.
func (r *run) measureMemory(ctx context.Context, w *world) error {
	var values []float64
	for range min(r.Repetitions, 3) {
		before := liveHeap()
		a, err := w.started(ctx)
		if err != nil {
			return err
		}
		after := liveHeap()
		runtime.KeepAlive(a)
		values = append(values, (after-before)/float64(len(w.servers.ids)))
	}
	r.report.Figures = append(r.report.Figures, Figure{
		ID: "memory", Name: "memory of the catalog, for each server", Servers: len(w.servers.ids), Unit: "B", Value: spreadOf(values),
	})
	return w.reset(ctx)
}

func liveHeap() float64 {
	runtime.GC()
	runtime.GC() // what finalizers let go in the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
