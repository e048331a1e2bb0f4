package httpapi

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/lease"
)

// A line that nothing comes over has comments, with which the right to watch is asked again: whoever lost it is sent off,
// while a database that is away sends nobody off. A watcher that was cut is sent off too.
//
// Requirements: E19, E20.
func TestStreamAsksForTheRightAgain(t *testing.T) {
	t.Parallel()
	hub := lease.NewHub(nil, quiet())
	visit := func(every time.Duration, answers ...error) string {
		watch, err := hub.Watch("acme", "rack:A12")
		require.NoError(t, err)
		if every == time.Hour {
			watch.Close()
		}
		s := &presenceStream{line: t.Context(), watch: watch, every: every, ending: make(chan struct{}), read: func(context.Context) (lease.Presence, error) {
			next := answers[0]
			answers = answers[1:]
			return lease.Presence{}, next
		}}
		out := httptest.NewRecorder()
		require.NoError(t, s.VisitWatchLeasesResponse(out))
		return out.Body.String()
	}
	first := "retry: 2000\n\nid: -62135596800000\nevent: presence\ndata: {\"resource\":\"\",\"at\":\"0001-01-01T00:00:00Z\",\"leases\":[]}\n\n"
	require.Equal(t, first+": here\n\n: here\n\n", visit(time.Millisecond, nil, errors.New("away"), lease.ErrEditRefused))
	require.Equal(t, first, visit(time.Hour))
	_, err := hub.Watch("acme", "rack:A12")
	require.NoError(t, err)
}
