package allocation

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/identity"
	"allocator/inventory"
)

// evaluation is that of an index, as Evaluate makes it.
func (x *index) evaluation(wanted Requirements, key string) *Evaluation {
	x.mu.RLock()
	e := x.evaluate(&wanted, key)
	x.mu.RUnlock()
	e.conclude(key)
	return e
}

// listed is everything that an evaluation says, written out.
type listed struct {
	Evaluation

	Ranked   []Candidate
	Rejected []Rejected
}

func written(e *Evaluation) listed {
	l := listed{Evaluation: *e, Ranked: slices.Collect(e.Ranked()), Rejected: slices.Collect(e.Rejected())}
	l.listing = nil
	return l
}

// plainly is the same by the rule in its plainest form.
func plainly(seen Snapshot, wanted Requirements, key string) listed {
	s := survey(seen, &wanted)
	ranked := rank(s.eligible, key)
	l := listed{Evaluation: Evaluation{At: seen.At, Servers: len(s.Judged), Eligible: len(ranked), Counts: s.Counts()}}
	for _, c := range ranked {
		own := common(*c.Server)
		own.ID, own.Name, own.Rack, own.Position = c.Server.ID, c.Server.Name, c.Server.Rack, c.Server.Position
		l.Ranked = append(l.Ranked, Candidate{Server: &own, Rank: c.Rank})
	}
	for _, j := range s.Judged {
		if server := &j.Facts.Server; !j.Verdict.Eligible() {
			l.Rejected = append(l.Rejected, Rejected{server.ID, server.Name, server.Site, j.Verdict})
		}
	}
	if len(ranked) > 0 {
		l.Text = explainChoice(ranked[0], l.Servers, l.Eligible, nil).Text
		return l
	}
	l.Cause, l.NextExpiryAt = s.emptyHanded()
	l.Nearest = s.Nearest()
	d := Decision{Outcome: OutcomeNoCapacity, Cause: l.Cause, NextExpiryAt: l.NextExpiryAt, Nearest: l.Nearest, Servers: l.Servers}
	l.Text = d.sentence()
	return l
}

// An evaluation from the catalog says of every server, in every field, what judging them one by one says, whatever order
// the catalog heard of them in.
//
// Requirements: R32, R33, R36.
func TestEvaluationSaysWhatTheSurveySays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		snapshot, wanted := drawSnapshot(rt), drawRequirements(rt)
		snapshot.At = time.UnixMicro(0).UTC()
		key := pick(rt, "key", "", "a", "b", "c")
		x := indexOf(rapid.Permutation(snapshot.Facts).Draw(rt, "heard of in this order"))
		require.Equal(rt, plainly(snapshot, wanted, key), written(x.evaluation(wanted, key)))
	})
}

// manyFacts are servers of a few kinds, one in seven of them sold, of which each rack has ten.
func manyFacts(n int) []Facts {
	facts := make([]Facts, n)
	for i := range facts {
		facts[i].Server = inventory.Server{
			ID: inventory.ServerID(fmt.Sprintf("srv_%08d", i)), Name: fmt.Sprint("m", i), Site: "a", Rack: fmt.Sprint("r", i%(n/10)),
			State: inventory.StateReady, Memory: inventory.Memory{MiB: int64(1024 * (1 + i%2)), Type: fmt.Sprint(i % 3)},
		}
		facts[i].Bound = i%7 == 0
	}
	return facts
}

// Many equals, of several kinds that rank alike, stand in one order to the last of them, also where racks are asked for.
//
// Requirements: R35.
func TestEvaluationRanksManyEquals(t *testing.T) {
	t.Parallel()
	facts := manyFacts(3000)
	x := indexOf(facts)
	var racks []string
	for i := range 150 {
		racks = append(racks, fmt.Sprint("r", i))
	}
	for _, key := range []string{"", "a", "b"} {
		for _, wanted := range []Requirements{{}, {Racks: racks}} {
			require.Equal(t, plainly(Snapshot{At: time.UnixMicro(0).UTC(), Facts: facts}, wanted, key), written(x.evaluation(wanted, key)))
		}
	}
}

// Every symbol of a server fits in the byte that the list has for it.
func TestSymbolsOfAServerFitInAByte(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(symbolVerdicts), 256)
}

// The list is of the instant at which it was made, each server in it exactly once, however much changes while it is read:
// holds come and go, servers come, and change their kind, and the catalog forgets everything.
//
// Requirements: R33.
func TestListStandsStillWhileTheCatalogMoves(t *testing.T) {
	t.Parallel()
	facts := manyFacts(2000)
	x := indexOf(facts)
	wanted := Requirements{Racks: []string{"r1", "r2", "r3"}, Memory: MemoryRequirements{MiBMin: 2048}}
	before := written(x.evaluation(wanted, "k"))
	e := x.evaluation(wanted, "k")
	step := 0
	move := func() {
		step++
		at := step * 7 % len(facts)
		moved := facts[at].Server
		moved.Version, moved.Memory.MiB, moved.Rack = int64(1+step), 4096, "r1"
		newcomer := inventory.Server{ID: inventory.ServerID(fmt.Sprintf("srv_%d", step)), Version: 1, Site: "b", State: inventory.StateReady}
		x.apply(News{
			Servers:  []inventory.Server{moved, newcomer},
			Holdings: []Holding{{Server: facts[step*11%len(facts)].Server.ID, Fence: int64(step + 1), Version: 1, Taken: true, Sold: step%2 == 0}},
		})
		if step == 500 {
			x.forgetUnless("another", x.now)
			x.begin(newsOf(facts[:10]))
		}
	}
	x.epoch = "this"
	var ids []inventory.ServerID
	for c := range e.Ranked() {
		move()
		require.Equal(t, before.Ranked[c.Rank-1].Server.ID, c.Server.ID)
		require.Equal(t, before.Ranked[c.Rank-1].Server.Memory, c.Server.Memory)
		ids = append(ids, c.Server.ID)
	}
	at := 0
	for r := range e.Rejected() {
		move()
		require.Equal(t, before.Rejected[at].Verdict, r.Verdict)
		ids = append(ids, r.Server)
		at++
	}
	require.Greater(t, step, 1000)
	slices.Sort(ids)
	var all []inventory.ServerID
	for _, f := range facts {
		all = append(all, f.Server.ID)
	}
	require.Equal(t, all, ids)
}

// Whoever reads slowly keeps nobody from changing the catalog, whatever place of the list they are at.
func TestSlowReaderLocksNobodyOut(t *testing.T) {
	t.Parallel()
	x := indexOf(manyFacts(1000))
	e := x.evaluation(Requirements{}, "k")
	news := News{Holdings: []Holding{{Server: "srv_00000001", Fence: 2, Version: 1, Taken: true}}}
	for _, read := range []func() bool{
		func() bool { return anyOf(e.Ranked(), func() bool { return appliedInTime(x, news) }) },
		func() bool { return anyOf(e.Rejected(), func() bool { return appliedInTime(x, news) }) },
	} {
		require.True(t, read(), "the catalog is locked while a server is looked at")
	}
}

func anyOf[T any](list iter.Seq[T], do func() bool) bool {
	for range list {
		return do()
	}
	return false
}

// appliedInTime is generous: it bounds hanging alone.
func appliedInTime(x *index, news News) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.apply(news)
	}()
	select {
	case <-done:
		return true
	case <-time.After(30 * time.Second):
		return false
	}
}

// What a list takes is a few bytes for each server, and reading it takes the same for any number of them.
//
//nolint:paralleltest // it counts what the whole process allocates
func TestMemoryOfAListIsBounded(t *testing.T) {
	made, read := map[int]float64{}, map[int]float64{}
	for _, n := range []int{10_000, 100_000} {
		x := indexOf(manyFacts(n))
		wanted := Requirements{Sites: []string{"elsewhere"}}
		x.evaluation(wanted, "k") // judges the kinds, which is kept
		var e *Evaluation
		made[n] = allocated(func() { e = x.evaluation(wanted, "k") })
		seen := 0
		read[n] = allocated(func() {
			for range e.Rejected() {
				seen++
			}
		})
		require.Equal(t, n, seen)
		require.Less(t, made[n]/float64(n), 8.0, "bytes for each of %d servers", n)
	}
	require.Less(t, read[100_000]/read[10_000], 2.0, "ten times as many servers")
}

// allocated is how many bytes something allocates, in all.
func allocated(do func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// forgetful is a store whose database turns out to be another one each time but the last.
type forgetful struct {
	Store

	facts []Facts
	reads int
}

func (f *forgetful) Everything(_ context.Context, _ identity.OrganizationID, page func(News)) (News, error) {
	all := newsOf(f.facts)
	all.Horizon = Horizon{} // nobody goes on from the middle
	page(all)
	return News{At: time.UnixMicro(1), Horizon: Horizon{Next: 1}, Epoch: fmt.Sprint(f.reads)}, nil
}

func (f *forgetful) News(context.Context, identity.OrganizationID, Horizon) (News, error) {
	f.reads = min(f.reads+1, 3)
	return News{At: time.UnixMicro(2), Horizon: Horizon{Next: 2}, Epoch: fmt.Sprint(f.reads)}, nil
}

type alwaysOn struct{}

func (alwaysOn) Enabled(context.Context, identity.OrganizationID) bool { return true }

// A database that is another one while an evaluation looks is read anew until it is the same, and then told of.
func TestEvaluationOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	store := &forgetful{facts: manyFacts(20)}
	a := New(store, alwaysOn{}, nil)
	e, err := a.Evaluate(t.Context(), identity.LocalCaller("acme", identity.Actor{}), "", Requirements{})
	require.NoError(t, err)
	require.Equal(t, 20, e.Servers)
	require.Equal(t, 3, store.reads)
	require.ErrorIs(t, newIndex().look(func(*index) {}), errUnread)
}
