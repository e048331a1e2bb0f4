//go:build gates && unix

package concurrency_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// An operator ends the session in the middle of a transaction: the caller is told that it failed, nothing was written,
// and the next request, on a new connection, is a new transaction.
//
// Requirements: R03, R50. Faults: F-C5.
func TestSessionTerminatedInMidTransaction(t *testing.T) {
	t.Parallel()
	for deed, places := range placesOf {
		if deed == "sweep" {
			continue // see TestSessionTerminatedInMidSweep
		}
		for i, place := range places {
			t.Run(deed+" at "+string(place), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, deed)
				ctx, arrived, release := s.pauseAt(place)
				done := make(chan error, 1)
				go func() { done <- s.do(ctx) }()
				s.wait(arrived)
				s.terminateTheIdle()
				release()
				err := receive(s.world, done)
				if last := i == len(places)-1; last && deed != "renew" && deed != "cancel" {
					// What was sent next was the COMMIT alone. That the server did not come to it is not for the client to know. At
					// the other places the server was first asked about statements that are new to the session.
					require.True(t, errors.Is(err, reservation.ErrUnavailable) || errors.Is(err, reservation.ErrOutcomeUnknown), "%v", err)
				} else {
					require.ErrorIs(t, err, reservation.ErrUnavailable)
				}
				s.untouched()
				require.NoError(t, s.again())
				s.sound()
			})
		}
	}
}

// terminateTheIdle ends the one session that stands still in a transaction, and returns when it is gone.
func (w *world) terminateTheIdle() {
	w.t.Helper()
	const idle = `FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`
	require.Equal(w.t, 1, one[int](w, `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) `+idle+`) ended`))
	require.Eventually(w.t, func() bool { return one[int](w, `SELECT count(*) `+idle) == 0 }, patience, 5*time.Millisecond)
}

// A sweep whose session is ended goes on row by row on another one.
//
// Requirements: R60. Faults: F-C5.
func TestSessionTerminatedInMidSweep(t *testing.T) {
	t.Parallel()
	s := newScene(t, "sweep")
	ctx, arrived, release := s.pauseAt(gate.SweepAfterPick)
	done := beginSweep(ctx, s.reservations)
	s.wait(arrived)
	s.terminateTheIdle()
	release()
	require.Equal(t, reservation.Swept{Expired: 1}, receive(s.world, done))
	s.endedOnce(s.hold.ID, "expired", "sweep")
	s.sound()
}
