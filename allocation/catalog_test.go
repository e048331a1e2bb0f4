package allocation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/inventory"
	"allocator/reservation"
)

func nobodyTries(inventory.ServerID) bool { return false }

// newsOf is what a feed would tell of these facts.
func newsOf(facts []Facts) News {
	news := News{At: time.UnixMicro(0).UTC(), Horizon: Horizon{Next: 1}}
	for _, f := range facts {
		if f.Server.Version == 0 {
			f.Server.Version = 1
		}
		news.Servers = append(news.Servers, f.Server)
		if f.Held || f.Bound {
			news.Holdings = append(news.Holdings, Holding{
				Server: f.Server.ID, Fence: 1, Version: 1, Sold: f.Bound, Taken: true, Until: time.UnixMicro(f.HeldUntil),
			})
		}
	}
	return news
}

func indexOf(facts []Facts) *index {
	x := newIndex()
	x.begin(newsOf(facts))
	return x
}

// What the catalog says of an inventory is what judging every server one by one says: counts, candidates and their
// order, cause, next expiry, nearest miss, and the reasons that are frozen.
//
// Requirements: R32, R33, R36.
func TestCatalogSaysWhatTheSurveySays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		snapshot, wanted := drawSnapshot(rt), drawRequirements(rt)
		key := pick(rt, "key", "a", "b", "c")
		require.NoError(rt, sameAsSurvey(rt, indexOf(snapshot.Facts), snapshot, wanted, key))
	})
}

func sameAsSurvey(t require.TestingT, x *index, snapshot Snapshot, wanted Requirements, key string) error {
	s := survey(snapshot, &wanted)
	o := x.overview(&wanted, key, MaxScanned+1, nobodyTries)
	require.Equal(t, len(s.Judged), o.servers)
	require.Equal(t, len(s.eligible), o.eligible)
	require.ElementsMatch(t, s.Counts(), o.counts)
	var want, got []inventory.ServerID
	for _, c := range rank(s.eligible, key) {
		want = append(want, c.Server.ID)
	}
	for i, c := range o.ranked {
		got = append(got, c.id)
		require.Equal(t, i+1, c.rank)
	}
	require.Equal(t, want[:min(len(want), MaxScanned+1)], got)
	if o.eligible == 0 {
		cause, next := s.emptyHanded()
		require.Equal(t, cause, o.cause)
		require.Equal(t, next, o.next)
		require.Equal(t, s.Nearest(), o.nearest)
	}
	list, err := o.frozen.Unpack()
	require.Len(t, list.Candidates, len(s.Judged))
	frozen := map[inventory.ServerID]FrozenCandidate{}
	for _, c := range list.Candidates {
		frozen[c.Server] = c
	}
	for _, j := range s.Judged {
		c := frozen[j.Facts.Server.ID]
		require.Equal(t, j.Facts.Server.Name, c.Name)
		require.Equal(t, j.Facts.Server.Site, c.Site)
		require.ElementsMatch(t, j.Verdict.Reasons(), c.Reasons)
	}
	return err
}

// Whatever order the words about servers arrive in, and however often, the catalog ends at the latest of each: setting
// and clearing in two racing calls must not leave a free server taken, nor a taken one free.
func TestLatestWordCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		snapshot := drawSnapshot(rt)
		var words []Holding
		final := slices.Clone(snapshot.Facts)
		for i := range final {
			f := &final[i]
			f.Held, f.Bound, f.HeldUntil = false, false, 0
			for fence := int64(1); fence <= rapid.Int64Range(0, 3).Draw(rt, "fences"); fence++ {
				words = append(words, history(rt, f, fence)...)
			}
			f.Server.Version = rapid.Int64Range(1, 3).Draw(rt, "version")
		}
		x := newIndex()
		order := rapid.Permutation(append(slices.Clone(words), words...)).Draw(rt, "order")
		old := slices.Clone(snapshot.Facts)
		for i := range old {
			old[i].Held, old[i].Bound = false, false
			old[i].Server.Version = 1
			if final[i].Server.Version > 1 {
				old[i].Server.Memory.MiB, old[i].Server.State = 77, inventory.StatePlanned // an older record
			}
		}
		x.begin(newsOf(old))
		x.overview(&Requirements{}, "k", MaxScanned+1, nobodyTries) // what is packed now is changed below
		for _, h := range order {
			x.apply(News{Holdings: []Holding{h}})
		}
		records := slices.Clone(final)
		for i := range records {
			records[i].Held, records[i].Bound = false, false
		}
		x.apply(newsOf(records))
		x.apply(newsOf(old)) // comes late, and changes nothing
		require.NoError(rt, sameAsSurvey(rt, x, Snapshot{Facts: final}, drawRequirements(rt), "k"))
		for _, k := range x.kinds {
			free := 0
			for place := range k.order {
				free += int(k.free[place/64] >> (place % 64) & 1)
			}
			require.Equal(rt, free, k.nFree)
		}
	})
}

// history draws what happens under one fence: held, perhaps renewed, then perhaps given up, or sold and perhaps ended.
func history(rt *rapid.T, f *Facts, fence int64) []Holding {
	until := rapid.Int64Range(1, 1000).Draw(rt, "until")
	h := Holding{Server: f.Server.ID, Fence: fence, Version: 1, Taken: true, Until: time.UnixMicro(until)}
	words := []Holding{h}
	f.Held, f.Bound, f.HeldUntil = true, false, until
	switch pick(rt, "then", "", "renewed", "given up", "sold", "ended") {
	case "renewed":
		h.Version, h.Until = 2, time.UnixMicro(until+500)
		f.HeldUntil += 500
		words = append(words, h)
	case "given up":
		h.Version, h.Taken = 2, false
		f.Held, f.HeldUntil = false, 0
		words = append(words, h)
	case "sold":
		f.Held, f.HeldUntil, f.Bound = false, 0, true
		words = append(words, Holding{Server: h.Server, Fence: fence, Sold: true, Version: 1, Taken: true})
	case "ended":
		f.Held, f.HeldUntil = false, 0
		sold := Holding{Server: h.Server, Fence: fence, Sold: true, Version: 1, Taken: true}
		ended := sold
		ended.Version, ended.Taken = 2, false
		words = append(words, sold, ended)
	}
	return words
}

// A hold past its deadline frees its server as soon as the database's clock was seen to be there, unless it was renewed.
//
// Requirements: R33, R61.
func TestCatalogLetsDeadHoldsGo(t *testing.T) {
	t.Parallel()
	facts := []Facts{
		{Server: inventory.Server{ID: "srv_1", Site: "a", State: inventory.StateReady}, Held: true, HeldUntil: 1000},
		{Server: inventory.Server{ID: "srv_2", Site: "a", State: inventory.StateReady}, Held: true, HeldUntil: 1000},
	}
	x := indexOf(facts)
	x.apply(News{Holdings: []Holding{{Server: "srv_2", Fence: 1, Version: 2, Taken: true, Until: time.UnixMicro(5000)}}})
	for _, step := range []struct{ now, eligible int64 }{{999, 0}, {1000, 1}, {4999, 1}, {5000, 2}} {
		x.apply(News{At: time.UnixMicro(step.now)})
		require.Equal(t, int(step.eligible), x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).eligible, fmt.Sprint(step.now))
	}
}

// Among many equals the first candidates are exactly the nearest by the ranking, found without looking at all, and
// those that a sibling is trying come last.
func TestCatalogRanksManyEquals(t *testing.T) {
	t.Parallel()
	facts := make([]Facts, 3000)
	for i := range facts {
		facts[i].Server = inventory.Server{ID: inventory.ServerID(fmt.Sprintf("srv_%d", i)), Site: "a", State: inventory.StateReady}
		facts[i].Bound = i%7 == 0
	}
	x := indexOf(facts)
	for _, key := range []string{"a", "b", "c", "d"} {
		require.NoError(t, sameAsSurveyRanking(t, x, facts, key))
		first := x.overview(&Requirements{}, key, MaxScanned+1, nobodyTries).ranked[0].id
		second := x.overview(&Requirements{}, key, MaxScanned+1, func(id inventory.ServerID) bool { return id == first }).ranked
		require.NotEqual(t, first, second[0].id)
		require.Equal(t, 2, second[0].rank)
	}
}

func sameAsSurveyRanking(t *testing.T, x *index, facts []Facts, key string) error {
	t.Helper()
	s := survey(Snapshot{Facts: facts}, &Requirements{})
	for i, c := range x.overview(&Requirements{}, key, MaxScanned+1, nobodyTries).ranked {
		require.Equal(t, rank(s.eligible, key)[i].Server.ID, c.id)
	}
	return nil
}

// A frozen list that cannot be read is said to be one, and never shown as something else.
//
// Requirements: R38.
func TestFrozenPacksThatCannotBeRead(t *testing.T) {
	t.Parallel()
	good := indexOf([]Facts{{Server: inventory.Server{ID: "srv_1", Site: "a", State: inventory.StateReady}}}).overview(&Requirements{}, "", MaxScanned+1, nobodyTries).frozen
	for name, spoil := range map[string]func(p *FrozenPack){
		"no roster":             func(p *FrozenPack) { p.Roster.Body = nil },
		"no reasons":            func(p *FrozenPack) { p.Reasons.Body = nil },
		"a newer shape":         func(p *FrozenPack) { p.Roster.Body = []byte(`{"v":2,"servers":[]}`) },
		"half a run":            func(p *FrozenPack) { p.Base, p.Statuses = Blob{}, []int{0} },
		"more than the roster":  func(p *FrozenPack) { p.Base, p.Statuses = Blob{}, []int{0, 2} },
		"less than the roster":  func(p *FrozenPack) { p.Base, p.Statuses = Blob{}, nil },
		"a negative run":        func(p *FrozenPack) { p.Base, p.Statuses = Blob{}, []int{0, -1, 0, 2} },
		"a symbol of nothing":   func(p *FrozenPack) { p.Base, p.Statuses = Blob{}, []int{100_000, 1} },
		"a negative symbol":     func(p *FrozenPack) { p.Base, p.Statuses = Blob{}, []int{-1, 1} },
		"no base":               func(p *FrozenPack) { p.Base.Body = nil },
		"a base of a new shape": func(p *FrozenPack) { p.Base.Body = []byte(`{"v":2,"runs":[0,1]}`) },
		"a base of others":      func(p *FrozenPack) { p.Base.Body = []byte(`{"v":1,"runs":[0,2]}`) },
		"half a change":         func(p *FrozenPack) { p.Statuses = []int{0} },
		"a change of nobody":    func(p *FrozenPack) { p.Statuses = []int{1, 0} },
		"a change to nothing":   func(p *FrozenPack) { p.Statuses = []int{0, 100_000} },
		"a kind that is nobody": func(p *FrozenPack) { p.Reasons.Body = []byte(`{"v":1,"kinds":[],"own":[[]],"statuses":[[]]}`) },
	} {
		pack := good
		spoil(&pack)
		_, err := pack.Unpack()
		require.Error(t, err, name)
	}
}

// What a decision freezes is what stands at that moment, however much has changed since the statuses were packed, and what
// an earlier decision froze stays as it was.
//
// Requirements: R38, R39.
func TestFrozenListFollowsEveryChange(t *testing.T) {
	t.Parallel()
	for name, servers := range map[string]int{"every server": 6 * maxChanged, "a sample": 3 * MaxFrozen} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := make([]Facts, servers)
			for i := range facts {
				facts[i].Server = inventory.Server{ID: inventory.ServerID(fmt.Sprintf("srv_%d", i)), Site: "a", State: inventory.StateReady}
			}
			x := indexOf(facts)
			var earlier *overview
			bases := map[string]bool{}
			for i := range 2*maxChanged + 5 {
				at := i * 2 % servers
				if servers > MaxFrozen {
					at = i * 3 % servers // those of the sample
				}
				facts[at].Bound = true
				x.apply(News{Holdings: []Holding{{Server: facts[at].Server.ID, Fence: int64(i + 1), Sold: true, Version: 1, Taken: true}}})
				o := x.overview(&Requirements{}, "k", MaxScanned+1, nobodyTries)
				bases[string(o.frozen.Base.Hash)] = true
				require.Equal(t, i+1, boundIn(t, o))
				if earlier != nil {
					require.Equal(t, i, boundIn(t, earlier))
				}
				earlier = o
			}
			require.Len(t, bases, 3, "packed anew when too much has changed, and not otherwise")
		})
	}
}

// boundIn counts the servers that a frozen list says are bound.
func boundIn(t *testing.T, o *overview) (n int) {
	t.Helper()
	list, err := o.frozen.Unpack()
	require.NoError(t, err)
	for _, c := range list.Candidates {
		if slices.Contains(c.Reasons, Reason{Code: CodeBound}) {
			n++
		}
	}
	return n
}

// The end of a sale is known only together with the state that the server is in after it: told of the one alone, the
// catalog goes on saying that the server is sold, and the next request reads what is new.
func TestAnEndedSaleIsNotFreeBeforeItsRecordIsRead(t *testing.T) {
	t.Parallel()
	c := newCatalog()
	known := c.tracked("acme")
	reads := 0
	news := News{
		Servers:  []inventory.Server{{ID: "srv_1", Version: 1, State: inventory.StateReady}},
		Holdings: []Holding{{Server: "srv_1", Fence: 1, Sold: true, Version: 1, Taken: true}},
	}
	feed := func(context.Context, Horizon) (News, error) {
		reads++
		return news, nil
	}
	require.NoError(t, known.bringUp(t.Context(), time.Hour, feed))
	require.NoError(t, known.bringUp(t.Context(), time.Hour, feed))
	require.Equal(t, 1, reads)
	ended := &reservation.Binding{Organization: "acme", Fence: 1, Version: 2, EndedAt: new(time.Now())}
	ended.Server.ID = "srv_1"
	c.BindingChanged(ended)
	require.Equal(t, Count{Servers: 1, Bound: 1}, known.capacity(Grouping{}).Total)

	news.Servers[0].Version, news.Servers[0].State = 2, inventory.StateMaintenance
	news.Holdings[0].Version, news.Holdings[0].Taken = 2, false
	require.NoError(t, known.bringUp(t.Context(), time.Hour, feed))
	require.Equal(t, Count{Servers: 1, Out: 1}, known.capacity(Grouping{}).Total)
}

// What outdates the catalog while it is being read is not in what that read brings, so the next request reads again.
func TestOutdatedWhileItIsRead(t *testing.T) {
	t.Parallel()
	c := newCatalog()
	known := c.tracked("acme")
	reads := 0
	feed := func(context.Context, Horizon) (News, error) {
		if reads++; reads == 1 {
			c.ServersChanged("acme")
		}
		return News{}, nil
	}
	for range 3 {
		require.NoError(t, known.bringUp(t.Context(), time.Hour, feed))
	}
	require.Equal(t, 2, reads)
}

// Who wants the first read while it is under way joins it, and hears of its failure; the one after that begins anew.
func TestFirstReadIsShared(t *testing.T) {
	t.Parallel()
	known := newCatalog().tracked("acme")
	goOn, broken := make(chan struct{}), errors.New("on purpose")
	first := known.startFilling(func() error {
		<-goOn
		return broken
	})
	require.Same(t, first, known.startFilling(func() error { panic("somebody reads already") }))
	close(goOn)
	<-first.done
	require.ErrorIs(t, first.err, broken)
	next := known.startFilling(func() error { return nil })
	require.NotSame(t, first, next)
	<-next.done
	require.NoError(t, next.err)
}
