//go:build gates && unix

package concurrency_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
)

// scene is one server, held unless the deed is to reserve it, and its deadline passed if it is to be swept.
type scene struct {
	*world
	deed    string
	hold    *reservation.Reservation
	version int64 // of the reservation before the deed
}

func newScene(t *testing.T, deed string) *scene {
	t.Helper()
	s := &scene{world: newWorld(t), deed: deed}
	s.servers(1)
	options := []allocation.Option{allocation.MaxAge(1)}
	if deed == "walk" {
		options = append(options, allocation.WalkAlways())
	}
	s.serve(s.pool, options...)
	s.fill()
	if deed != "reserve" && deed != "walk" {
		s.hold = s.held("a").Reservation
	}
	if deed == "sweep" {
		s.expire(s.hold.ID)
	}
	s.version = one[int64](s.world, `SELECT coalesce(max(version), 0) FROM reservations`)
	return s
}

// at starts a process that does the deed and returns when it stands at the place.
func (s *scene) at(place string, settings map[string]string) *process {
	s.t.Helper()
	environment := map[string]string{deedEnv: s.deed, placeEnv: place}
	if s.hold != nil {
		environment[reservationEnv] = string(s.hold.ID)
	}
	p := s.start("deed", "deed", s.with(settings), environment)
	require.Equal(s.t, "at "+place, p.hear())
	return p
}

// do does the deed in the test's own process.
func (s *scene) do(ctx context.Context) error {
	var id reservation.ID
	if s.hold != nil {
		id = s.hold.ID
	}
	return deeds[s.deed](ctx, s.allocator, s.reservations, id)
}

// again does the deed once more.
func (s *scene) again() error { return s.do(s.ctx) }

// untouched asserts that the deed left nothing: no row, no event, no decision, no moved deadline.
func (s *scene) untouched() {
	s.t.Helper()
	rows := 0
	if s.hold != nil {
		rows = 1
		require.Equal(s.t, "held", s.state(s.hold.ID))
		require.Equal(s.t, s.version, one[int64](s.world, `SELECT max(version) FROM reservations`))
	}
	for _, table := range []string{"reservations", "occupancy", "event_feed", "decisions"} {
		require.Equal(s.t, rows, one[int](s.world, `SELECT count(*) FROM `+table), table)
	}
	require.Zero(s.t, one[int](s.world, `SELECT count(*) FROM bindings`))
}
