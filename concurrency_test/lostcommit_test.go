//go:build gates && unix

package concurrency_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
)

// warm does everything once, so that the driver knows every statement.
func (w *world) warm(p *proxy) {
	w.t.Helper()
	for _, name := range []string{"warm-1", "warm-2"} {
		server := w.server(1)
		hold := w.held(name).Reservation.ID
		w.reserve(w.ctx, request(name))
		_, err := w.reservations.Renew(w.ctx, w.caller, hold, "")
		require.NoError(w.t, err)
		_, err = w.reservations.Convert(w.ctx, w.caller, hold, "", name)
		require.NoError(w.t, err)
		_, err = w.reservations.Convert(w.ctx, w.caller, hold, "", name)
		require.NoError(w.t, err)
		w.server(1)
		_, err = w.reservations.Cancel(w.ctx, w.caller, w.held(name+"-cancel").Reservation.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
		require.NoError(w.t, err)
		w.exec(`UPDATE servers SET state = 'maintenance' WHERE id <> $1`, server)
		require.True(w.t, w.reserve(w.ctx, request(name+"-refused")).Refused())
	}
	w.exec(`UPDATE servers SET state = 'maintenance'`)
	p.forget()
}

// The answer to a commit is lost, by a broken connection or by silence until the caller's patience ends. The caller
// hears that the outcome is unknown, and not that nothing happened; what was asked stands, and asking again with the
// same key or for the same service finds it.
//
// Requirements: R03, R40, R44, R53. Faults: F-C6, F-F6.
func TestLostAnswerToACommit(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]loss{"the connection breaks": loseAnswer, "nothing comes back": loseEverything} {
		for _, deed := range []string{"reserve", "convert", "renew", "cancel"} {
			t.Run(deed+", "+name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, deed)
				p := s.throughProxy(2) // a connection that is silent is not given up at once
				p.next.Store(int32(lost))
				ctx := s.ctx
				if lost == loseEverything {
					short, cancel := context.WithTimeout(s.ctx, 2*time.Second)
					defer cancel()
					ctx = short
				}
				err := s.do(ctx)
				require.ErrorIs(t, err, reservation.ErrOutcomeUnknown)
				require.NotErrorIs(t, err, reservation.ErrUnavailable, "which says that nothing was changed")
				require.Zero(t, p.next.Load(), "nothing was lost")
				s.findsIt()
				s.sound()
			})
		}
	}
}

// findsIt asserts that the deed was done, and that the same request again finds it and does nothing more.
func (s *scene) findsIt() {
	s.t.Helper()
	events := one[int](s.world, `SELECT count(*) FROM event_feed`)
	switch s.deed {
	case "reserve":
		stored := s.storedByName()["deed"]
		require.NotEmpty(s.t, stored)
		again := s.reserve(s.ctx, request("deed"))
		require.Equal(s.t, allocation.OutcomeReplayed, again.Code)
		require.Equal(s.t, stored, again.Reservation.ID)
		require.NotEmpty(s.t, again.HoldToken)
	case "convert":
		require.Equal(s.t, "converted", s.state(s.hold.ID))
		again, err := s.reservations.Convert(s.ctx, s.caller, s.hold.ID, "", "service")
		require.NoError(s.t, err)
		require.True(s.t, again.Repeated)
		require.Equal(s.t, 1, one[int](s.world, `SELECT count(*) FROM bindings`))
	case "cancel":
		require.Equal(s.t, "cancelled", s.state(s.hold.ID))
		require.NoError(s.t, s.again())
	default:
		now, err := s.reservations.Reservation(s.ctx, s.caller, s.hold.ID)
		require.NoError(s.t, err)
		require.True(s.t, now.ExpiresAt.After(s.hold.ExpiresAt))
	}
	require.Equal(s.t, events, one[int](s.world, `SELECT count(*) FROM event_feed`), "done once, told once")
}

// The commit itself is lost on its way. For the caller that looks the same; nothing stands, and asking again does it.
//
// Requirements: R03, R44. Faults: F-C6.
func TestLostCommit(t *testing.T) {
	t.Parallel()
	for _, deed := range []string{"reserve", "convert", "renew", "cancel"} {
		t.Run(deed, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, deed)
			p := s.throughProxy(1)
			p.next.Store(int32(loseRequest))
			err := s.do(s.ctx)
			require.ErrorIs(t, err, reservation.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, reservation.ErrUnavailable)
			require.Zero(t, p.next.Load(), "nothing was lost")
			require.Eventually(t, func() bool { // the server rolls back when it sees that the connection is gone
				return one[int](s.world, `SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
					WHERE c.relname = 'reservations' AND l.pid <> pg_backend_pid()`) == 0
			}, patience, 5*time.Millisecond)
			s.untouched()
			require.NoError(t, s.again())
			if deed == "reserve" {
				require.Equal(t, allocation.OutcomeReplayed, s.reserve(s.ctx, request("deed")).Code)
			}
			s.sound()
		})
	}
}

// How many times the service waits for the database. An uncontended reservation takes four, reading the whole inventory
// included.
//
// Requirements: R32
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.throughProxy(1)
	w.warm(p)
	w.servers(3)
	hold := w.held("a").Reservation.ID
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	steps := []struct {
		name string
		most int
		do   func()
	}{
		{"reserve", 4, func() { w.held("b") }},
		{"replay", 2, func() { require.Equal(t, allocation.OutcomeReplayed, w.reserve(w.ctx, request("b")).Code) }},
		{"renew", 3, func() { _, err := w.reservations.Renew(w.ctx, w.caller, hold, ""); must(err) }},
		{"convert", 1, func() { _, err := w.reservations.Convert(w.ctx, w.caller, hold, "", "service"); must(err) }},
		{"convert again", 4, func() { _, err := w.reservations.Convert(w.ctx, w.caller, hold, "", "service"); must(err) }},
		{"cancel", 3, func() {
			b := w.storedByName()["b"]
			p.forget()
			_, err := w.reservations.Cancel(w.ctx, w.caller, b, "", reservation.Cancellation{Reason: reservation.CancelOther})
			must(err)
		}},
		{"no_capacity", 4, func() {
			req := request("c")
			req.Requirements.Sites = []string{"nowhere"}
			require.Equal(t, allocation.OutcomeNoCapacity, w.reserve(w.ctx, req).Code)
		}},
	}
	for _, step := range steps {
		p.forget()
		step.do()
		trips := p.roundTrips()
		t.Logf("%-14s %d round trips", step.name, len(trips))
		require.LessOrEqual(t, len(trips), step.most, "%s: %s", step.name, shortened(trips))
	}
}

// shortened shows the beginning of each statement.
func shortened(trips [][]string) string {
	var lines []string
	for _, statements := range trips {
		var words []string
		for _, sql := range statements {
			words = append(words, strings.Join(strings.Fields(sql)[:min(4, len(strings.Fields(sql)))], " "))
		}
		lines = append(lines, strings.Join(words, "; "))
	}
	return "\n" + strings.Join(lines, "\n")
}
