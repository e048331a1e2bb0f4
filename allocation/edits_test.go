package allocation

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/identity"
	"allocator/inventory"
)

// slowFeed answers when the test says so.
type slowFeed struct {
	asked  chan struct{}
	answer chan []inventory.ServerID // closed: it fails
}

func (f *slowFeed) ServersUnderEdit(context.Context, identity.OrganizationID) ([]inventory.ServerID, error) {
	f.asked <- struct{}{}
	servers, ok := <-f.answer
	if !ok {
		return nil, errors.New("away")
	}
	return servers, nil
}

const editsWait = 20 * time.Second

// A request never waits for who edits what: asking returns at once, one reading is under way at a time, and what is known is
// what was read last. What was read too long ago is not said any more, and a failure says nothing.
func TestEditsAreNeverWaitedFor(t *testing.T) {
	t.Parallel()
	feed := &slowFeed{asked: make(chan struct{}, 10), answer: make(chan []inventory.ServerID)}
	a := New(nil, nil, nil, NotingEdits(feed))
	e := a.edits
	e.begin(t.Context(), "acme")
	e.begin(t.Context(), "acme")
	<-feed.asked
	require.Empty(t, e.known("acme"), "nobody has answered")
	feed.answer <- []inventory.ServerID{"srv_1"}
	require.Eventually(t, func() bool { return len(e.known("acme")) == 1 }, editsWait, time.Millisecond)
	require.Empty(t, feed.asked, "one reading for both")
	e.begin(t.Context(), "acme")
	require.Empty(t, feed.asked, "it is young")
	require.Empty(t, e.known("globex"))

	age := func(by time.Duration) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.orgs["acme"].read = e.orgs["acme"].read.Add(-by)
	}
	age(editsRefresh)
	require.Len(t, e.known("acme"), 1)
	e.begin(t.Context(), "acme")
	<-feed.asked
	age(editsKept)
	require.Empty(t, e.known("acme"), "too long ago")
	close(feed.answer)
	require.Eventually(t, func() bool { e.begin(t.Context(), "acme"); return len(feed.asked) > 0 }, editsWait, time.Millisecond, "asked again after a failure")
	require.Empty(t, e.known("acme"))

	var none *edits
	none.begin(t.Context(), "acme")
	require.Empty(t, none.known("acme"))
}

// A decision keeps at most so many, and first those that it tried.
func TestNotedServersAreBounded(t *testing.T) {
	t.Parallel()
	var all []inventory.ServerID
	for i := range maxNoted + 10 {
		all = append(all, inventory.ServerID(fmt.Sprint("srv_", i)))
	}
	last := all[len(all)-1]
	got := noted(all, []Walked{{Server: last}})
	require.Len(t, got, maxNoted)
	require.Equal(t, last, got[0])
	require.Equal(t, inventory.ServerID("srv_0"), got[1])
	require.Equal(t, all[:3], noted(all[:3], nil))
}
