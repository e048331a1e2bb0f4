//go:build gates

package concurrency_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// What lengthens and repeats the tests that live by chance.
const (
	seedEnv   = "CONCURRENCY_SEED"   // as a failure prints it
	roundsEnv = "CONCURRENCY_ROUNDS" // more than the short form has
)

// number reads such a setting.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

const (
	historyProcesses = 3
	historyServers   = 5
	historyClients   = 3 // in each process
	historyTurns     = 45
	spareRounds      = 3 // at most, if by chance no call came to one of the places where a fault was to meet it
)

// Many clients of several service processes do everything at once to a few servers, with holds of a second; some do not
// wait for their answers, and now and then a process is killed. What every client was told must be possible for a
// server that has one owner at a time, in some order that agrees with when the calls were made; a lost answer may mean
// either. Refusals by the whole inventory are held against what was surely free or surely taken meanwhile. Many a call
// meets a fault at one of the places inside its transaction, and each place is met. An auditor looks throughout, and a
// greedy buyer wants each server without pause.
//
// Requirements: R01, R03, R16, R18, R35, R36, R41, R48, R49, R51, R61. Cases: HO-01, CO-03.
// Faults: F-R15, F-R17, F-L3, F-C1, F-N1, F-K4.
func TestHistories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := number(t, seedEnv, rand.Uint64())
	rounds := int(number(t, roundsEnv, 3))
	told := &summary{w: w, seed: seed, answers: map[string]int{}, armed: map[gate.Place]int{}, reached: map[gate.Place]int{}, met: map[fault]int{}}
	t.Logf("%s=%d", seedEnv, seed)
	t.Cleanup(told.again)
	rng := rand.New(rand.NewPCG(seed, 0))
	var processes []*process
	for i := range historyProcesses {
		processes = append(processes, w.start("history", fmt.Sprint("service-", i), w.url, nil))
	}
	for round := 0; round < rounds || round < rounds+spareRounds && len(told.missing()) > 0; round++ {
		h := w.chapter(round, seed)
		told.last = h
		stop := w.auditor(stuck)
		victim := -1
		if round%2 == 1 {
			victim = rng.IntN(historyProcesses)
		}
		h.perform(processes, victim, 20+rng.IntN(100))
		if victim >= 0 {
			processes[victim] = w.start("history", fmt.Sprint("service-", round, "-", victim), w.url, nil)
		}
		told.looks += stop()
		told.count(h.records)
		h.settle()
		h.check()
		w.exec(`ANALYZE`) // the auditor reads ever larger tables
	}
	w.atRest()
	require.Zero(t, w.deadlocks())
	told.enough()
}

// history is what the clients of one chapter were told.
type history struct {
	*world
	chapter
	round   int
	records []record // in the order of calling
}

// chapter makes an organization with servers of its own.
func (w *world) chapter(round int, seed uint64) *history {
	w.t.Helper()
	h := &history{world: w, round: round, chapter: chapter{
		Org: identity.OrganizationID(fmt.Sprint("round-", round)), Seed: seed + uint64(round), Clients: historyClients, Turns: historyTurns, Clock: w.skew(),
	}}
	w.exec(`INSERT INTO organizations (id, name, hold_seconds, hold_limit) VALUES ($1, $1, $2, 10000)`, h.Org, int(historyHold.Seconds()))
	for range historyServers {
		id := uuid.Must(uuid.NewV7())
		w.exec(`INSERT INTO servers (organization_id, id, source, external_id, site, state) VALUES ($1, $2, 'test', $3, 'FSN1', 'ready')`, h.Org, id, id.String())
		h.Servers = append(h.Servers, serverID(id))
	}
	return h
}

// skew compares the clocks: the quickest of a few answers tells the most.
func (w *world) skew() (best skew) {
	w.t.Helper()
	best.Slack = math.MaxInt64
	for range 5 {
		before := time.Now()
		at := one[time.Time](w, `SELECT clock_timestamp()`)
		trip := time.Since(before)
		if slack := trip.Microseconds()/2 + 1; slack < best.Slack {
			best = skew{Shift: at.Sub(before.Add(trip / 2)).Microseconds(), Slack: slack}
		}
	}
	return best
}

// perform lets the processes play the chapter. The victim, if there is one, is killed after that many lines.
func (h *history) perform(processes []*process, victim, lines int) {
	h.t.Helper()
	for i, p := range processes {
		part := h.chapter
		part.Seed += uint64(i) << 32
		part.Sweeps = i == 0
		for n := i; n < len(h.Servers); n += len(processes) {
			part.Greedy = append(part.Greedy, h.Servers[n])
		}
		line, err := json.Marshal(part)
		require.NoError(h.t, err)
		p.tell(string(line))
	}
	heard := map[string]record{}
	defer func() { // also of what fails
		h.records = slices.SortedFunc(maps.Values(heard), func(a, b record) int { return cmp.Compare(a.Called, b.Called) })
	}()
	if victim >= 0 {
		p := processes[victim]
		for range lines {
			h.hears(heard, p.hear())
		}
		p.kill()
		for line := range p.said {
			h.hears(heard, line)
		}
		p.forgotten()
	}
	for i, p := range processes {
		for more := i != victim; more; {
			more = h.hears(heard, p.hear())
		}
	}
}

// hears takes in a line, and tells whether there will be more. The answer of a call replaces the call.
func (h *history) hears(heard map[string]record, line string) bool {
	h.t.Helper()
	if line == "done" {
		return false
	}
	var r record
	require.NoError(h.t, json.Unmarshal([]byte(line), &r), line)
	heard[fmt.Sprint(r.Process, r.Number)] = r
	return true
}

// settle makes of calls without an answer what they may have been, drops those that changed nothing, and adds what stands
// in the end.
func (h *history) settle() {
	h.t.Helper()
	claimed := map[string]bool{} // what an answered call is known to have made
	for _, r := range h.records {
		switch string(r.Op) + " " + r.Answer {
		case "reserve reserved":
			claimed[r.Key] = true
		case "convert ok":
			claimed[string(r.Binding)] = true
		case "renew ok":
			claimed[fmt.Sprint(r.Reservation, r.Until)] = true
		}
	}
	var settled []record
	for _, r := range h.records {
		if r.Answer == "" || r.Answer == unknownAnswer {
			r.Answer, r.Returned = unknownAnswer, math.MaxInt64
			if !h.mayHaveBeen(&r, claimed) {
				continue
			}
		}
		if r.Answer != unavailable {
			settled = append(settled, r)
		}
	}
	settled = append(settled, h.inspection()...)
	h.records = settled
}

// mayHaveBeen completes a call of unknown outcome with what the database says of it; false if it did nothing.
func (h *history) mayHaveBeen(r *record, claimed map[string]bool) bool {
	h.t.Helper()
	ctx, pool := h.ctx, h.pool
	switch r.Op {
	case opReserve, opRead:
		r.Op = opReserve
		var id, server uuid.UUID
		var at time.Time
		err := pool.QueryRow(ctx, `SELECT id, server_id, created_at FROM reservations WHERE organization_id = $1 AND idempotency_key = $2`, h.Org, r.Key).Scan(&id, &server, &at)
		if err != nil || claimed[r.Key] {
			return false
		}
		claimed[r.Key] = true
		r.Reservation, r.Server, r.At, r.Until = reservationID(id), serverID(server), at.UnixMicro(), at.Add(historyHold).UnixMicro()
	case opConvert:
		var id uuid.UUID
		var at time.Time
		err := pool.QueryRow(ctx, `SELECT id, since FROM bindings WHERE organization_id = $1 AND reservation_id = $2`, h.Org, rawID(string(r.Reservation))).Scan(&id, &at)
		if err != nil {
			return false
		}
		r.Binding, r.At = bindingID(id), at.UnixMicro()
		return !claimed[string(r.Binding)]
	case opCancel:
		var at *time.Time
		require.NoError(h.t, pool.QueryRow(ctx, `SELECT ended_at FROM reservations WHERE organization_id = $1 AND id = $2 AND state = 'cancelled'
			UNION ALL SELECT NULL LIMIT 1`, h.Org, rawID(string(r.Reservation))).Scan(&at))
		if at == nil {
			return false
		}
		r.At = at.UnixMicro()
	case opRenew:
		for _, until := range many[time.Time](h.world, `SELECT (data ->> 'expires_at')::timestamptz FROM events
			WHERE organization_id = $1 AND reservation_id = $2 AND type = 'reservation.renewed'`, h.Org, rawID(string(r.Reservation))) {
			if !claimed[fmt.Sprint(r.Reservation, until.UnixMicro())] {
				r.Renewed = append(r.Renewed, until.UnixMicro())
			}
		}
	case opTakeOver, opEnd, opState, opSweep, opInspect:
	}
	return true
}

// inspection is what stands on every server in the end. Nobody asks for anything any more.
func (h *history) inspection() (records []record) {
	h.t.Helper()
	rows, err := h.pool.Query(h.ctx, `SELECT s.id, s.state, o.reservation_id, o.binding_id, r.expires_at
		FROM servers s
		LEFT JOIN occupancy o ON o.organization_id = s.organization_id AND o.server_id = s.id
		LEFT JOIN reservations r ON r.organization_id = s.organization_id AND r.id = o.reservation_id
		WHERE s.organization_id = $1`, h.Org)
	require.NoError(h.t, err)
	var id uuid.UUID
	var held, bound *uuid.UUID
	var until *time.Time
	var state inventory.State
	_, err = pgx.ForEachRow(rows, []any{&id, &state, &held, &bound, &until}, func() error {
		r := record{Process: "inspection", Number: len(records), Op: opInspect, Server: serverID(id), State: state, Called: h.Clock.earliest(), Returned: math.MaxInt64}
		if held != nil {
			r.Reservation, r.Until = reservationID(*held), until.UnixMicro()
		}
		if bound != nil {
			r.Binding = bindingID(*bound)
		}
		records = append(records, r)
		return nil
	})
	require.NoError(h.t, err)
	require.NoError(h.t, rows.Err())
	return records
}

// check holds the history against the model, server by server, its refusals against what was surely so, and all that was
// acknowledged against what is there. Who fails it prints the whole of it.
func (h *history) check() {
	h.t.Helper()
	for _, server := range h.Servers {
		of := slices.DeleteFunc(slices.Clone(h.records), func(r record) bool { return r.Server != server })
		result := porcupine.CheckOperationsTimeout(serverModel.ToModel(), operations(of), patience)
		require.Equal(h.t, porcupine.Ok, result, "no server can have told what %s did", server)
	}
	require.Empty(h.t, dishonest(h.Servers, h.records))
	require.Empty(h.t, h.refusedWhileFree(h.Org, h.records), "sold out, and a server was free all the while")
	require.Empty(h.t, h.acknowledgedAndGone(h.Org, h.records))
}

// operations are records as the checker wants them.
func operations(records []record) []porcupine.Operation {
	list := make([]porcupine.Operation, len(records))
	for i, r := range records {
		list[i] = porcupine.Operation{ClientId: i, Input: r, Call: r.Called, Return: r.Returned}
	}
	return list
}

// story is a history to be read, and to be checked again by TestSavedHistory.
func story(records []record) string {
	var lines strings.Builder
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return err.Error()
		}
		lines.Write(append(line, '\n'))
	}
	return lines.String()
}

func bindingID(id uuid.UUID) reservation.BindingID {
	return reservation.BindingID("bnd_" + strings.ReplaceAll(id.String(), "-", ""))
}

func reservationID(id uuid.UUID) reservation.ID {
	return reservation.ID("res_" + strings.ReplaceAll(id.String(), "-", ""))
}
