//go:build gates && unix

package concurrency_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// reserveProgram reserves one server after the other and says each reservation that was acknowledged to it, four at a
// time, until it is killed or nothing is left.
func reserveProgram(ctx context.Context, c *child) error {
	allocator, _, err := c.service(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d-%d", i, n)
				outcome, err := allocator.Reserve(ctx, tester, request(name))
				if err != nil || outcome.Code == allocation.OutcomeNoCapacity {
					return
				}
				if !outcome.Refused() {
					c.say(name, outcome.Reservation.ID)
				}
			}
		})
	}
	all.Wait()
	return nil
}

// acknowledgement reads such a line.
func acknowledgement(line string) (name string, id reservation.ID) {
	name, told, _ := strings.Cut(line, " ")
	return name, reservation.ID(told)
}

// The service is killed while it reserves. Every reservation that it acknowledged is there; one that is there and was
// not acknowledged is found by its key; and the key of one that is not there reserves.
//
// Requirements: R03, R40, R41. Faults: F-C1.
func TestAcknowledgedReservationsSurviveKill(t *testing.T) {
	t.Parallel()
	unacknowledged := 0
	for round := range 4 {
		w := newWorld(t)
		w.servers(120)
		p := w.start("reserve", "killed", w.url, nil)
		acked := map[string]reservation.ID{}
		for range 8 + 3*round {
			name, id := acknowledgement(p.hear())
			acked[name] = id
		}
		p.kill()
		p.forgotten()
		for line := range p.said {
			name, id := acknowledgement(line)
			acked[name] = id
		}
		stored := w.storedByName()
		for name, id := range acked {
			require.Equal(t, id, stored[name], "acknowledged, and gone")
		}
		unacknowledged += len(stored) - len(acked)
		for name, id := range stored {
			again := w.reserve(w.ctx, request(name))
			require.Equal(t, allocation.OutcomeReplayed, again.Code)
			require.Equal(t, id, again.Reservation.ID)
			require.NotEmpty(t, again.HoldToken)
		}
		w.servers(4) // it may have sold all there were
		for i := range 4 {
			require.Equal(t, allocation.OutcomeReserved, w.reserve(w.ctx, request(fmt.Sprintf("%d-%d", i, len(stored)))).Code)
		}
		w.sound()
	}
	t.Logf("stored and never acknowledged: %d", unacknowledged)
}

// storedByName reads the reservations by the name of their request.
func (w *world) storedByName() map[string]reservation.ID {
	w.t.Helper()
	stored := map[string]reservation.ID{}
	rows, err := w.pool.Query(w.ctx, `SELECT idempotency_key, id FROM reservations`)
	require.NoError(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var key string
		var id uuid.UUID
		require.NoError(w.t, rows.Scan(&key, &id))
		stored[strings.TrimPrefix(key, "key-")] = reservation.ID("res_" + strings.ReplaceAll(id.String(), "-", ""))
	}
	require.NoError(w.t, rows.Err())
	return stored
}

// What a deed process reads from its environment.
const (
	deedEnv        = "CONCURRENCY_TEST_DEED"        // what it does, once
	placeEnv       = "CONCURRENCY_TEST_PLACE"       // where it stands still: a gate, or acknowledge
	reservationEnv = "CONCURRENCY_TEST_RESERVATION" // to what, unless it reserves
)

// acknowledge is the place between the answer to COMMIT and the answer to the caller.
const acknowledge = "acknowledge"

// deedProgram does one thing, stands still on the way where the test wants it, and says how it went.
func deedProgram(ctx context.Context, c *child) error {
	var options []allocation.Option
	if os.Getenv(deedEnv) == "walk" {
		options = append(options, allocation.WalkAlways())
	}
	allocator, reservations, err := c.service(ctx, options...)
	if err != nil {
		return err
	}
	set, place := &gate.Set{}, os.Getenv(placeEnv)
	set.Arm(gate.Place(place), func(context.Context) error {
		c.stand(place)
		return nil
	})
	err = deeds[os.Getenv(deedEnv)](gate.With(ctx, set), allocator, reservations, reservation.ID(os.Getenv(reservationEnv)))
	if place == acknowledge {
		c.stand(place)
	}
	c.say("done:", err)
	return nil
}

// deeds are what such a process can do; each is refused by an error.
var deeds = map[string]func(ctx context.Context, a *allocation.Allocator, r *reservation.Service, id reservation.ID) error{
	"reserve": reserveDeed,
	"walk":    reserveDeed,
	"convert": func(ctx context.Context, _ *allocation.Allocator, r *reservation.Service, id reservation.ID) error {
		_, err := r.Convert(ctx, tester, id, "", "service")
		return err
	},
	"renew": func(ctx context.Context, _ *allocation.Allocator, r *reservation.Service, id reservation.ID) error {
		_, err := r.Renew(ctx, tester, id, "")
		return err
	},
	"cancel": func(ctx context.Context, _ *allocation.Allocator, r *reservation.Service, id reservation.ID) error {
		_, err := r.Cancel(ctx, tester, id, "", reservation.Cancellation{Reason: reservation.CancelOther})
		return err
	},
	"sweep": func(ctx context.Context, _ *allocation.Allocator, r *reservation.Service, _ reservation.ID) error {
		_, err := r.Sweep(ctx, batch)
		return err
	},
}

func reserveDeed(ctx context.Context, a *allocation.Allocator, _ *reservation.Service, _ reservation.ID) error {
	outcome, err := a.Reserve(ctx, tester, request("deed"))
	if err == nil && outcome.Refused() {
		err = fmt.Errorf("refused: %s", outcome.Code)
	}
	return err
}

// placesOf are where each deed can stand still inside its transaction, the last of them before its commit.
var placesOf = map[string][]gate.Place{
	"walk":    {gate.ReserveAfterOpen, gate.ReserveAfterList, gate.ReserveAfterLock, gate.ReserveAfterInsert},
	"reserve": {gate.ReserveAfterList, gate.ReserveAfterLock, gate.ReserveAfterInsert},
	"convert": {gate.ChangeAfterServer, gate.ChangeAfterLock, gate.ConvertAfterBinding, gate.ConvertBeforeCommit},
	"renew":   {gate.ChangeAfterLock},
	"cancel":  {gate.ChangeAfterLock},
	"sweep":   {gate.SweepAfterPick},
}

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
	for _, table := range []string{"reservations", "occupancy", "events", "decisions"} {
		require.Equal(s.t, rows, one[int](s.world, `SELECT count(*) FROM `+table), table)
	}
	require.Zero(s.t, one[int](s.world, `SELECT count(*) FROM bindings`))
}

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
			events := one[int](s.world, `SELECT count(*) FROM events`)
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
			require.Equal(t, events, one[int](s.world, `SELECT count(*) FROM events`), "a repetition is told to nobody")
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
