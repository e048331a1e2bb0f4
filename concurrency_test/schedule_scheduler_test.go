//go:build gates

package concurrency_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/gate"
)

// scheduleEnv names one schedule, as a failure prints it, to be run alone.
const scheduleEnv = "CONCURRENCY_SCHEDULE"

// pollAfter is how long the scheduler listens before it asks the database who waits for whom. It only saves questions:
// that an actor is blocked is known from pg_blocking_pids alone.
const pollAfter = 2 * time.Millisecond

// act is one operation of a schedule. What it came to is a word, so that outcomes can be listed.
type act struct {
	name string
	do   func(ctx context.Context, p *play, l *lane) string
}

// actor is an act in a goroutine of its own, which stops at every place until the scheduler lets it go on.
type actor struct {
	act
	lane    *lane
	goOn    chan struct{}
	at      string // where it stands; "" while it is on its way
	blocked bool   // on its way, and waiting for another actor's lock
	word    string // what it came to
}

// The places beside those of the gates.
const (
	theBeginning = "the beginning"
	theEnd       = "the end"
)

// arrival is what an actor tells the scheduler.
type arrival struct {
	actor *actor
	at    string
}

// schedule is one run of some acts: a list of choices, which actor was let on at each turn. At a turn every actor that
// stands at a place may be chosen, so the choices make a tree. It is walked whole by running, again and again, the path
// up to its last turn with a choice left, and from there on the first actor of each turn.
type schedule struct {
	*play
	*drama
	actors   []*actor
	arrivals chan arrival
	path     []int
	widths   []int // among how many each choice was made
	trace    []string
}

// everySchedule runs all interleavings of the acts over their places, each in a fresh play, gives each to check, and
// tells how many there were and whether only one was asked for.
func (s *stage) everySchedule(d *drama, check func(*schedule)) (runs int, only bool) {
	s.t.Helper()
	path, only := s.given()
	for path != nil {
		run := &schedule{play: d.set(s), drama: d, path: path, arrivals: make(chan arrival)}
		run.perform()
		check(run)
		runs++
		if path = run.next(); only {
			break
		}
	}
	return runs, only
}

// given is the one schedule that the environment asks for, or the first of all.
func (s *stage) given() (path []int, only bool) {
	s.t.Helper()
	path = []int{}
	for choice := range strings.FieldsSeq(strings.ReplaceAll(os.Getenv(scheduleEnv), ".", " ")) {
		n, err := strconv.Atoi(choice)
		require.NoError(s.t, err, scheduleEnv)
		path = append(path, n)
	}
	return path, len(path) > 0
}

// next is the path to the next unseen leaf of the tree; nil after the last.
func (r *schedule) next() []int {
	for turn, choice := range slices.Backward(r.path) {
		if choice+1 < r.widths[turn] {
			return append(slices.Clone(r.path[:turn]), choice+1)
		}
	}
	return nil
}

// perform runs the schedule to its end.
func (r *schedule) perform() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel() // lets go whoever still stands at a place when a check has failed
	for i, a := range r.acts {
		r.lanes[i].fill(r.t, r.staff)
		if slices.ContainsFunc(r.actors, func(other *actor) bool { return other.name == a.name }) {
			a.name += " once more"
		}
		one := &actor{act: a, lane: r.lanes[i], goOn: make(chan struct{}), at: theBeginning}
		r.actors = append(r.actors, one)
		go r.live(ctx, one)
	}
	for turn := 0; ; turn++ {
		ready := r.ready()
		if len(ready) == 0 {
			break
		}
		if turn == len(r.path) {
			r.path = append(r.path, 0)
		}
		r.widths = append(r.widths, len(ready))
		require.Less(r.t, r.path[turn], len(ready), "the same choices led elsewhere\n%s", r)
		r.letOn(ready[r.path[turn]])
		r.settle()
	}
	for _, one := range r.actors {
		require.Equal(r.t, theEnd, one.at, "everybody waits for somebody\n%s", r)
	}
}

// ready are the actors that stand at a place. Of two that are alike the first may as well be the one to begin.
func (r *schedule) ready() (ready []*actor) {
	for i, one := range r.actors {
		second := i == 1 && r.crowd && r.actors[0].at == theBeginning
		if one.at != "" && one.at != theEnd && !second {
			ready = append(ready, one)
		}
	}
	return ready
}

// live is an actor's life.
func (r *schedule) live(ctx context.Context, one *actor) {
	set := &gate.Set{}
	for _, place := range r.stops {
		set.Arm(place, func(ctx context.Context) error {
			select {
			case r.arrivals <- arrival{one, string(place)}:
			case <-ctx.Done():
			}
			return one.waits(ctx)
		})
	}
	if one.waits(ctx) != nil {
		return
	}
	one.word = one.do(gate.With(ctx, set), r.play, one.lane)
	select {
	case r.arrivals <- arrival{one, theEnd}:
	case <-ctx.Done():
	}
}

// waits until the scheduler lets the actor go on.
func (a *actor) waits(ctx context.Context) error {
	select {
	case <-a.goOn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *schedule) letOn(one *actor) {
	r.notef("%s leaves %s", one.name, one.at)
	one.at = ""
	one.goOn <- struct{}{}
}

// settle returns when every actor stands at a place, has ended, or waits for the lock of one that stands.
func (r *schedule) settle() {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		moving := r.moving()
		if len(moving) == 0 || !time.Now().Before(deadline) {
			require.Empty(r.t, moving, "somebody goes on for ever\n%s", r)
			return
		}
		select {
		case a := <-r.arrivals:
			a.actor.at, a.actor.blocked = a.at, false
			r.reached[gate.Place(a.at)]++
			r.notef("%s reaches %s", a.actor.name, a.at)
			continue
		case <-time.After(pollAfter):
		}
		if r.allBlocked(moving) && (len(moving) < 2 || r.allBlocked(moving)) { // a second look: the answers of one are not of one instant
			return
		}
	}
}

// moving are the actors on their way.
func (r *schedule) moving() (moving []*actor) {
	for _, one := range r.actors {
		if one.at == "" {
			moving = append(moving, one)
		}
	}
	return moving
}

// allBlocked asks the database whether each of the actors waits for a lock of another actor.
func (r *schedule) allBlocked(moving []*actor) bool {
	r.t.Helper()
	var pids, all []int32
	for _, one := range moving {
		pids = append(pids, one.lane.pid)
	}
	for _, one := range r.actors {
		all = append(all, one.lane.pid)
	}
	rows, err := r.pool.Query(r.ctx, `SELECT pid FROM unnest($1::int[]) AS pid WHERE pg_blocking_pids(pid) && $2::int[]`, pids, all)
	require.NoError(r.t, err)
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	require.NoError(r.t, err)
	for _, one := range moving {
		if was := one.blocked; !was && slices.Contains(waiting, one.lane.pid) {
			one.blocked = true
			r.notef("%s waits for another's lock", one.name)
		}
	}
	return len(waiting) == len(moving)
}

func (r *schedule) notef(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

// String tells the story, and how to see it again.
func (r *schedule) String() string {
	choices := strings.Trim(strings.ReplaceAll(fmt.Sprint(r.path[:min(len(r.widths), len(r.path))]), " ", "."), "[]")
	return fmt.Sprintf("again with -run '^%s$' and %s=%s:\n  %s", r.t.Name(), scheduleEnv, choices, strings.Join(r.trace, "\n  "))
}

// outcome is what each actor came to and what stands in the end, in one line.
func (r *schedule) outcome() string {
	r.t.Helper()
	words := make([]string, len(r.actors))
	for i, one := range r.actors {
		words[i] = one.word
	}
	return strings.Join(words, " + ") + ": " + r.judge(r)
}
