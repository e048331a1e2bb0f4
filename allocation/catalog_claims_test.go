package allocation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/inventory"
)

// What one request of a process is trying, another does not try while there is anything else: neither the walk, which puts it
// last, nor the attempt at once, which passes it over.
//
// Requirements: R34.
func TestSiblingsServersAreLeftAlone(t *testing.T) {
	t.Parallel()
	known := newCatalog().tracked("acme")
	known.begin(newsOf([]Facts{
		{Server: inventory.Server{ID: "srv_00000000000000000000000000000001", Site: "a", State: inventory.StateReady}},
		{Server: inventory.Server{ID: "srv_00000000000000000000000000000002", Site: "a", State: inventory.StateReady}},
	}))
	w := &walk{known: known, req: &Request{IdempotencyKey: "k"}}
	first := func() inventory.ServerID {
		w.lookFor(1)
		require.Len(t, w.seen.ranked, 1)
		return w.seen.ranked[0].id
	}
	best := first()
	release := known.claim(best)
	again := known.claim(best) // two may try the same one, if there is nothing else
	require.NotEqual(t, best, first(), "a sibling is trying it")
	release()
	require.NotEqual(t, best, first(), "another still is")

	w.lookFor(2)
	second, leave := known.claimFirst(w.seen.ranked)
	require.NotEqual(t, best, second.id)
	none, _ := known.claimFirst(w.seen.ranked)
	require.Nil(t, none, "both are tried")
	again()
	leave()
	require.Equal(t, best, first(), "nobody tries either")
	require.Empty(t, known.busy)
}
