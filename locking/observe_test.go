package locking

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Contention and a broken backend are counted apart, since only one of them is worth waking somebody for; success, a
// mistake of the caller and a caller who went away are neither.
//
// Requirements: L04.
func TestContentionAndFailureAreCountedApart(t *testing.T) {
	t.Parallel()
	onEverySite(t, func(t *testing.T, s site) {
		var counts Counts
		l := Observed(s.node(t), &counts)
		require.Contains(t, backends, l.Name())
		h := take(t, l, "key", long)
		_, err := l.Try(t.Context(), "", long)
		require.Error(t, err)
		require.Zero(t, counts.Contentions()+counts.BackendFailures())

		requireTaken(t, l, "key")
		requireTaken(t, l, "key")
		require.EqualValues(t, 2, counts.Contentions())
		require.Zero(t, counts.BackendFailures())

		s.stop(t)
		_, err = l.Try(t.Context(), "key", long)
		require.ErrorIs(t, err, ErrBackend)
		require.Equal(t, ErrNotOwner, l.Renew(t.Context(), h), "everything else goes through")
		require.EqualValues(t, 2, counts.Contentions())
		require.EqualValues(t, 1, counts.BackendFailures())
	})
}
