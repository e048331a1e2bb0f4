//go:build gates

package concurrency_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/inventory"
)

// Whatever is done one after the other, the answers and what stands afterwards are those of a model in plain maps, and
// every invariant holds after every step. The same trace runs in an organization that one service instance serves and in
// one that three serve, each with a pool of its own and any of them at each step: nothing tells them apart. The clock
// stands still where the trace sets it, on a deadline to the microsecond if it wants.
//
// Requirements: R13, R14, R40, R46, R47, R51, R52, R54, R61, R65, R66.
// Cases: HO-06, HO-08, HO-11, CO-03, CO-10, CO-11, EX-08, EX-10, ID-01, ID-05, ID-10.
// Faults: F-K2, F-K4, F-K5, F-R8, F-D5.
func TestStateMachine(t *testing.T) {
	t.Parallel()
	checks := number(t, roundsEnv, 12)
	setRapid(t, map[string]string{
		"rapid.checks": strconv.FormatUint(checks, 10), "rapid.steps": "50", "rapid.nofailfile": "true",
		"rapid.seed": strconv.FormatUint(number(t, seedEnv, 0), 10), // 0: another one each time, which a failure prints
	})
	s := newStage(t)
	branches := []*branch{newBranch(s, 1), newBranch(s, 3)}
	done := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{branches: branches, done: done}
		m.begin(rt)
		actions := m.actions()
		actions[""] = m.agree
		rt.Repeat(actions)
	})
	steps := 0
	for name := range (&machine{}).actions() {
		require.NotZero(t, done[name], "no trace came to %q: %v", name, done)
		steps += done[name]
	}
	t.Logf("tried: %d traces, %d steps", checks, steps)
}

// setRapid settles how rapid checks until the end of the test; it knows no other way than its flags.
func setRapid(t *testing.T, settings map[string]string) {
	t.Helper()
	for name, value := range settings {
		was := flag.Lookup(name).Value.String()
		require.NoError(t, flag.Set(name, value))
		t.Cleanup(func() { require.NoError(t, flag.Set(name, was)) })
	}
}

// machine takes one trace through the model and both branches.
type machine struct {
	*ledgerModel
	branches []*branch
	requests []modelRequest
	done     map[string]int
}

type modelRequest struct {
	key   string
	asked modelOrder
}

// begin sets the stage: what an earlier trace has left is over.
func (m *machine) begin(rt *rapid.T) {
	one := m.branches[0]
	one.setClock(curtain.Add(1000 * time.Hour))
	_, err := one.reservations.Sweep(one.ctx, batch)
	require.NoError(rt, err)
	m.ledgerModel = &ledgerModel{now: curtain, on: true, keys: map[string]*modelHold{}}
	one.setClock(m.now)
	one.release.turn(true)
	var sizes []int
	for i := range rapid.IntRange(2, 4).Draw(rt, "servers") {
		sizes = append(sizes, 1024*(i+1))
		m.servers = append(m.servers, &modelServer{mib: sizes[i], state: inventory.StateReady})
	}
	for _, d := range m.branches {
		d.begin(sizes)
	}
}

// both does a step in both branches, through any of their instances, and holds the answers against the model's.
func (m *machine) both(rt *rapid.T, name, want string, do func(d *branch, l *lane) string) {
	m.done[name]++
	for _, d := range m.branches {
		l := d.instances[rapid.IntRange(0, len(d.instances)-1).Draw(rt, "instance")]
		require.Equal(rt, want, do(d, l), "%s, %d instances", name, len(d.instances))
	}
}

// agree holds what stands against the model.
func (m *machine) agree(rt *rapid.T) {
	for _, d := range m.branches {
		stands, found := d.standing()
		require.Empty(rt, found, "%d instances", len(d.instances))
		require.Equal(rt, m.String(), stands, "%d instances", len(d.instances))
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"reserve": m.doReserve, "reserve again": m.doReserveAgain, "replay": m.doReplay, "replay changed": m.doReplayChanged,
		"renew": m.doRenew, "keep": m.doKeep, "cancel": m.doCancel, "convert": m.doConvert, "take over": m.doTakeOver, "end": m.doEnd,
		"maintenance": m.doMaintenance, "ready": m.doReady, "time": m.doTime, "sweep": m.doSweep, "switch": m.doSwitch, "crash": m.doCrash,
	}
}

func (m *machine) ask(rt *rapid.T, name string, r modelRequest) {
	m.requests = append(m.requests, r)
	m.both(rt, name, m.reserve(r.key, r.asked), func(d *branch, l *lane) string { return d.reserve(l, r.key, r.asked) })
}

func (m *machine) newKey() string { return fmt.Sprint("key-", len(m.requests)) }

var orderLines = []string{"o-1", "o-2", "o-3", "o-4", "o-5"}

func drawOrder(rt *rapid.T) modelOrder {
	return modelOrder{
		order:    rapid.SampledFrom(orderLines).Draw(rt, "order"),
		customer: rapid.SampledFrom([]string{"", "", "c-1"}).Draw(rt, "customer"),
		mib:      rapid.SampledFrom([]int{0, 0, 2048, 4096}).Draw(rt, "MiB"),
	}
}

func (m *machine) doReserve(rt *rapid.T) {
	m.ask(rt, "reserve", modelRequest{m.newKey(), drawOrder(rt)})
}

// earlier is a request that was sent before, refused or not.
func (m *machine) earlier(rt *rapid.T) modelRequest {
	if len(m.requests) == 0 {
		rt.Skip("nothing was asked yet")
	}
	return m.requests[rapid.IntRange(0, len(m.requests)-1).Draw(rt, "request")]
}

// doReserveAgain asks for an earlier order line by a new key, mostly for one that somebody has.
func (m *machine) doReserveAgain(rt *rapid.T) {
	asked := m.earlier(rt).asked
	if had := m.ofLine(rapid.SampledFrom(orderLines).Draw(rt, "line")); had != nil {
		asked = had.order
	}
	m.ask(rt, "reserve again", modelRequest{m.newKey(), asked})
}

func (m *machine) doReplay(rt *rapid.T) { m.ask(rt, "replay", m.earlier(rt)) }

func (m *machine) doReplayChanged(rt *rapid.T) {
	m.ask(rt, "replay changed", modelRequest{m.earlier(rt).key, drawOrder(rt)})
}

// aHold is a hold, mostly one that is alive, and the generation of a token of it: the present one, the first one, or none.
func (m *machine) aHold(rt *rapid.T) (h *modelHold, generation int64) {
	if len(m.holds) == 0 {
		rt.Skip("nothing was held yet")
	}
	choice := m.holds
	if rapid.IntRange(0, 2).Draw(rt, "alive") > 0 {
		alive := slices.DeleteFunc(slices.Clone(m.holds), func(h *modelHold) bool { return !m.live(h) })
		if len(alive) > 0 {
			choice = alive
		}
	}
	h = rapid.SampledFrom(choice).Draw(rt, "hold")
	return h, rapid.SampledFrom([]int64{0, 1, h.generation}).Draw(rt, "generation")
}

func (m *machine) doRenew(rt *rapid.T) {
	h, generation := m.aHold(rt)
	m.both(rt, "renew", m.renew(h, generation), func(d *branch, l *lane) string { return d.renew(l, h.number, generation) })
}

// doKeep keeps a hold alive for as long as it can be, a minute before each deadline, and a little longer.
func (m *machine) doKeep(rt *rapid.T) {
	h, _ := m.aHold(rt)
	for range rapid.IntRange(2, 6).Draw(rt, "times") {
		m.setTime(m.now.Add(holdTime - time.Minute))
		m.both(rt, "keep", m.renew(h, 0), func(d *branch, l *lane) string { return d.renew(l, h.number, 0) })
	}
}

func (m *machine) doCancel(rt *rapid.T) {
	h, generation := m.aHold(rt)
	m.both(rt, "cancel", m.cancel(h, generation), func(d *branch, l *lane) string { return d.cancel(l, h.number, generation) })
}

func (m *machine) doConvert(rt *rapid.T) {
	h, generation := m.aHold(rt)
	service := rapid.SampledFrom([]string{"s-1", "s-2", fmt.Sprint("s-of-", h.number)}).Draw(rt, "service")
	m.both(rt, "convert", m.convert(h, generation, service), func(d *branch, l *lane) string { return d.convert(l, h.number, generation, service) })
}

func (m *machine) doTakeOver(rt *rapid.T) {
	h, _ := m.aHold(rt)
	m.both(rt, "take over", m.takeOver(h), func(d *branch, l *lane) string { return d.takeOver(l, h.number) })
}

func (m *machine) doEnd(rt *rapid.T) {
	if len(m.bindings) == 0 {
		rt.Skip("nothing was sold yet")
	}
	b := m.bindings[rapid.IntRange(0, len(m.bindings)-1).Draw(rt, "binding")]
	m.both(rt, "end", m.end(b), func(d *branch, l *lane) string { return d.end(l, b.number) })
}

func (m *machine) doMaintenance(rt *rapid.T) {
	server, force := rapid.IntRange(0, len(m.servers)-1).Draw(rt, "server"), rapid.Bool().Draw(rt, "force")
	m.both(rt, "maintenance", m.setState(server, inventory.StateMaintenance, force), func(d *branch, l *lane) string {
		return d.setState(l, server, inventory.StateMaintenance, force)
	})
}

// doReady makes one of the servers ready that are not.
func (m *machine) doReady(rt *rapid.T) {
	server := slices.IndexFunc(m.servers, func(s *modelServer) bool { return s.state != inventory.StateReady })
	if server < 0 {
		rt.Skip("all are ready")
	}
	m.both(rt, "ready", m.setState(server, inventory.StateReady, false), func(d *branch, l *lane) string {
		return d.setState(l, server, inventory.StateReady, false)
	})
}

// doTime moves the clock: a few minutes, or to the next deadline, or to the last microsecond before it.
func (m *machine) doTime(rt *rapid.T) {
	m.done["time"]++
	forward := rapid.SampledFrom([]time.Duration{time.Minute, 4 * time.Minute, 10 * time.Minute, 0, -time.Microsecond}).Draw(rt, "forward")
	next := m.now.Add(max(forward, time.Minute))
	if forward <= 0 {
		for _, h := range m.holds {
			if at := h.until.Add(forward); m.live(h) && at.After(m.now) && at.Before(next.Add(holdTime)) {
				next = at
			}
		}
	}
	m.setTime(next)
}

func (m *machine) setTime(now time.Time) {
	m.now = now
	m.branches[0].setClock(now)
}

// doSweep sweeps once for everybody.
func (m *machine) doSweep(rt *rapid.T) {
	m.done["sweep"]++
	d := rapid.SampledFrom(m.branches).Draw(rt, "branch")
	l := d.instances[rapid.IntRange(0, len(d.instances)-1).Draw(rt, "instance")]
	swept, err := l.reservations.Sweep(d.ctx, batch)
	require.NoError(rt, err)
	require.Equal(rt, len(m.branches)*m.sweep(), swept.Expired)
}

func (m *machine) doSwitch(rt *rapid.T) {
	m.done["switch"]++
	m.on = rapid.SampledFrom([]bool{true, true, false}).Draw(rt, "on")
	m.branches[0].release.turn(m.on)
}

func (m *machine) doCrash(rt *rapid.T) {
	m.done["crash"]++
	for _, d := range m.branches {
		d.crash(rapid.IntRange(0, len(d.instances)-1).Draw(rt, "instance"))
	}
}

// turn turns the switch.
func (r *release) turn(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = !on
}
