//go:build gates && unix

package concurrency_test

import (
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
)

// Killed anywhere before its commit, a process leaves nothing, and the server and the locks are free for the next one.
//
// Requirements: R03, R50. Cases: ID-03. Faults: F-C1, F-C8, F-K7.
func TestKilledBeforeTheCommit(t *testing.T) {
	t.Parallel()
	for deed, places := range placesOf {
		for _, place := range places {
			t.Run(deed+" at "+string(place), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, deed)
				p := s.at(string(place), nil)
				p.kill()
				p.forgotten()
				s.untouched()
				require.NoError(t, s.again())
				s.sound()
			})
		}
	}
}

// Killed after its commit and before it could say so, a process leaves the whole: the key replays the reservation, and a
// conversion that is repeated is the same binding.
//
// Requirements: R03, R40, R53. Cases: ID-03. Faults: F-C1, F-C8.
func TestKilledBeforeTheAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, deed := range []string{"reserve", "convert", "cancel"} {
		t.Run(deed, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, deed)
			p := s.at(acknowledge, nil)
			p.kill()
			p.forgotten()
			events := one[int](s.world, `SELECT count(*) FROM event_feed`)
			switch deed {
			case "reserve":
				stored := s.storedByName()["deed"]
				require.NotEmpty(t, stored)
				again := s.reserve(s.ctx, request("deed"))
				require.Equal(t, allocation.OutcomeReplayed, again.Code)
				require.Equal(t, stored, again.Reservation.ID)
				require.NotEmpty(t, again.HoldToken)
			case "convert":
				again, err := s.reservations.Convert(s.ctx, s.caller, s.hold.ID, "", "service")
				require.NoError(t, err)
				require.True(t, again.Repeated)
				require.Equal(t, one[uuid.UUID](s.world, `SELECT id FROM bindings`), rawID(string(again.Binding.ID)))
			default:
				require.NoError(t, s.again())
				s.endedOnce(s.hold.ID, "cancelled", "person")
			}
			require.Equal(t, events, one[int](s.world, `SELECT count(*) FROM event_feed`), "a repetition is told to nobody")
			s.sound()
		})
	}
}

// A process is frozen inside its transaction. The server ends that after a while, so that somebody else can have the
// server; the process wakes up, is told that it failed, and has written nothing.
//
// Requirements: R03, R45. Faults: F-C2.
func TestFrozenInsideATransaction(t *testing.T) {
	t.Parallel()
	for deed, places := range placesOf {
		place := string(places[len(places)-1])
		t.Run(deed+" at "+place, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, deed)
			p := s.at(place, map[string]string{"idle_in_transaction_session_timeout": "500"})
			p.signal(syscall.SIGSTOP)
			require.Eventually(t, func() bool { return p.sessions() == 0 }, patience, 10*time.Millisecond, "the server keeps it for ever")
			s.untouched()
			if deed == "reserve" {
				s.held("somebody else")
			} else {
				require.NoError(t, s.again())
			}
			rows := one[string](s.world, `SELECT json_agg(r ORDER BY id)::text FROM reservations r`)
			p.signal(syscall.SIGCONT)
			p.tell("go on")
			said := p.hear()
			if deed == "sweep" { // it takes a batch that failed row by row, and finds them done
				require.Equal(t, "done: <nil>", said)
			} else {
				require.Regexp(t, regexp.QuoteMeta(reservation.ErrUnavailable.Error())+"|"+regexp.QuoteMeta(reservation.ErrOutcomeUnknown.Error()), said)
			}
			require.Zero(t, p.exits())
			require.Equal(t, rows, one[string](s.world, `SELECT json_agg(r ORDER BY id)::text FROM reservations r`))
			s.sound()
		})
	}
}
