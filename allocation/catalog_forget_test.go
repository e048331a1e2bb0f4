package allocation

import (
	"context"
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
	require.Equal(t, Horizon(1), x.position())
	require.True(t, x.forgetUnless("2", x.now))
	require.Zero(t, x.position())
	require.Equal(t, CauseInventoryEmpty, x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).cause)
	fresh := newsOf([]Facts{{Server: inventory.Server{ID: "srv_1", Site: "a", State: inventory.StateReady}}})
	fresh.Epoch, fresh.Horizon = "2", 1
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
// Requirements: R38.
func TestCatalogThatIsFarBehindReadsEverythingAnew(t *testing.T) {
	t.Parallel()
	two := []Facts{
		{Server: inventory.Server{ID: "srv_1", Site: "a", State: inventory.StateReady}},
		{Server: inventory.Server{ID: "srv_2", Site: "b", State: inventory.StateReady}},
	}
	x := indexOf(two)
	ofOne := newsOf(two[:1])
	_, err := x.news(t.Context(), told{News{TooMuch: true, Horizon: 7, Servers: ofOne.Servers}}, "acme", x.position())
	require.ErrorIs(t, err, errUnread)
	require.Zero(t, x.position())
	x.apply(ofOne) // of a read that began before
	require.Zero(t, x.position(), "it has to be read in full still")
	require.Zero(t, x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).servers)
	x.beginFilling()
	page := newsOf(two)
	page.Horizon = 0
	x.apply(page)
	_, err = x.news(t.Context(), told{News{TooMuch: true}}, "acme", 1) // a sibling's, which began before as well
	require.ErrorIs(t, err, errUnread)
	x.endFilling(true)
	x.begin(News{Horizon: 8})
	require.Equal(t, 2, x.overview(&Requirements{}, "", MaxScanned+1, nobodyTries).eligible, "what was read meanwhile is kept")
}
