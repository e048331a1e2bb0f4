package allocation

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/identity"
	"allocator/inventory"
)

// When the database is not the one that it was, everything is forgotten and read anew.
func TestCatalogForgetsAnotherDatabase(t *testing.T) {
	t.Parallel()
	x := newIndex()
	news := newsOf([]Facts{{Server: inventory.Server{ID: "srv_1", Site: "a", State: inventory.StateReady}, Held: true, HeldUntil: 1000}})
	news.Epoch = "1"
	x.begin(news)
	require.False(t, x.forgetUnless("1", x.now.Add(-setBack/2)), "another read began earlier")
	require.Equal(t, Horizon{Next: 1}, x.position())
	require.True(t, x.forgetUnless("2", x.now))
	require.Zero(t, x.position())
	require.Equal(t, CauseInventoryEmpty, x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).cause)
	fresh := newsOf([]Facts{{Server: inventory.Server{ID: "srv_1", Site: "a", State: inventory.StateReady}}})
	fresh.Epoch, fresh.Horizon = "2", Horizon{Next: 1}
	x.begin(fresh)
	require.Equal(t, 1, x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).eligible)
}

// When the database's clock was set back, holds live again that had been let go.
//
// Faults: F-T2.
func TestCatalogForgetsWhenTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	x := newIndex()
	news := newsOf([]Facts{{Server: inventory.Server{ID: "srv_1", Site: "a", State: inventory.StateReady}, Held: true, HeldUntil: 1000}})
	news.Epoch, news.At = "1", time.UnixMicro(1000)
	x.begin(news)
	require.Equal(t, 1, x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).eligible)
	news.At = news.At.Add(-time.Hour)
	require.True(t, x.forgetUnless("1", news.At))
	x.begin(news)
	require.Zero(t, x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).eligible)
}

// told is a source that has prepared what it tells.
type told struct{ news News }

// News implements source.
func (s told) News(context.Context, identity.OrganizationID, Horizon) (News, error) {
	return s.news, nil
}

// More than one read may bring is not taken in part: everything is forgotten and read anew. What a read brings that began
// before is no beginning then; the servers that it does not tell of would be taken for not being there.
//
// Requirements: R32.
func TestCatalogThatIsFarBehindReadsEverythingAnew(t *testing.T) {
	t.Parallel()
	two := []Facts{
		{Server: inventory.Server{ID: "srv_1", Site: "a", State: inventory.StateReady}},
		{Server: inventory.Server{ID: "srv_2", Site: "b", State: inventory.StateReady}},
	}
	x := indexOf(two)
	ofOne := newsOf(two[:1])
	_, err := x.news(t.Context(), told{News{TooMuch: true, Horizon: Horizon{Next: 7}, Servers: ofOne.Servers}}, "acme", x.position())
	require.ErrorIs(t, err, errUnread)
	require.Zero(t, x.position())
	x.apply(ofOne) // of a read that began before
	require.Zero(t, x.position(), "it has to be read in full still")
	require.Zero(t, x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).servers)
	x.beginFilling()
	page := newsOf(two)
	page.Horizon = Horizon{}
	x.apply(page)
	_, err = x.news(t.Context(), told{News{TooMuch: true}}, "acme", Horizon{Next: 1}) // a sibling's, which began before as well
	require.ErrorIs(t, err, errUnread)
	x.endFilling(true)
	x.begin(News{Horizon: Horizon{Next: 8}})
	require.Equal(t, 2, x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).eligible, "what was read meanwhile is kept")
}

// Reads that began one after the other may end in any order: the next goes on from the one that saw more.
func TestHorizonsAreInTheOrderOfWhatWasOver(t *testing.T) {
	t.Parallel()
	inOrder := []Horizon{{}, {Next: 9, Open: "7,8"}, {Next: 9, Open: "8"}, {Next: 9}, {Next: 10, Open: "8,9"}, {Next: 10}, {Next: 11, Open: "10"}}
	for i, horizon := range inOrder {
		for j, than := range inOrder {
			require.Equal(t, i > j, horizon.later(than), "%+v later than %+v", horizon, than)
		}
	}
	x := newIndex()
	x.begin(News{Horizon: inOrder[3]})
	x.apply(News{Horizon: inOrder[1]})
	require.Equal(t, inOrder[3], x.position())
	x.apply(News{Horizon: inOrder[4]})
	require.Equal(t, inOrder[4], x.position())
}

// The first read is over when its last page is taken in, and not when it was read: until then servers would be missing.
//
// Requirements: R32.
func TestFirstReadEndsWithItsLastPage(t *testing.T) {
	t.Parallel()
	known := newCatalog().tracked("acme")
	page := newsOf([]Facts{{Server: inventory.Server{ID: "srv_1", Site: "a", State: inventory.StateReady}}})
	page.Horizon = Horizon{}
	returned, done := make(chan struct{}), make(chan struct{})
	known.index.mu.Lock() // the page cannot be taken in yet
	go func() {
		defer close(done)
		_, _ = known.applyPages(func(take func(News)) (News, error) {
			defer close(returned)
			take(page)
			return News{}, nil
		})
	}()
	<-returned
	for range 10_000 {
		runtime.Gosched()
		select {
		case <-done:
			known.index.mu.Unlock()
			require.Fail(t, "over before its last page is there")
		default:
		}
	}
	known.index.mu.Unlock()
	<-done
	require.Len(t, known.servers, 1)
}
