//go:build gates

package concurrency_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"allocator/inventory"
	"allocator/reservation"
)

// ledgerModel is what an organization has, in plain maps and lists: what the service must answer when nobody else is at
// work. Servers, holds and bindings are known by the order in which they were made, so that the same trace means the
// same in any database.
type ledgerModel struct {
	now      time.Time
	on       bool // the switch
	servers  []*modelServer
	holds    []*modelHold
	bindings []*modelBinding
	keys     map[string]*modelHold
}

type modelServer struct {
	mib   int
	state inventory.State
}

type modelHold struct {
	number     int
	order      modelOrder
	server     int
	state      reservation.State // as the row has it
	until, max time.Time
	generation int64
	binding    *modelBinding
}

// modelOrder is what is asked for, without the key: equal ones have equal fingerprints.
type modelOrder struct {
	order    string
	customer string
	mib      int
}

type modelBinding struct {
	number  int
	hold    *modelHold
	service string
	active  bool
}

const (
	modelCeiling   = time.Hour
	modelHoldLimit = 2
)

func (m *ledgerModel) dead(h *modelHold) bool {
	return h.state == reservation.StateHeld && !m.now.Before(h.until)
}

func (m *ledgerModel) live(h *modelHold) bool {
	return h.state == reservation.StateHeld && m.now.Before(h.until)
}

// touch is what every change does first: a dead hold is moved aside.
func (m *ledgerModel) touch(h *modelHold) {
	if m.dead(h) {
		h.state = reservation.StateExpired
	}
}

// shown is the state that a caller sees.
func (m *ledgerModel) shown(h *modelHold) reservation.State {
	if m.dead(h) {
		return reservation.StateExpired
	}
	return h.state
}

// onServer is the hold or the binding that a server's occupancy row names.
func (m *ledgerModel) onServer(server int) (*modelHold, *modelBinding) {
	for _, h := range m.holds {
		switch {
		case h.server != server:
		case h.state == reservation.StateHeld:
			return h, nil
		case h.binding != nil && h.binding.active:
			return nil, h.binding
		}
	}
	return nil, nil
}

// ofLine is the hold or the sold reservation of an order line.
func (m *ledgerModel) ofLine(order string) *modelHold {
	for _, h := range m.holds {
		if h.order.order == order && (h.state == reservation.StateHeld || h.binding != nil && h.binding.active) {
			return h
		}
	}
	return nil
}

// String keeps what a trace draws readable.
func (h *modelHold) String() string { return fmt.Sprint(h.number) }

// reserve answers in the order in which a request asks: the key, the switch, the order line, the limit, the list.
func (m *ledgerModel) reserve(key string, asked modelOrder) string {
	if h := m.keys[key]; h != nil {
		if h.order != asked {
			return "mismatch"
		}
		return m.again("replayed", h)
	}
	if !m.on {
		return "feature_disabled"
	}
	if h := m.ofLine(asked.order); h != nil && !m.dead(h) {
		if h.order != asked {
			return "order_line_held"
		}
		return m.again("existing", h)
	} else if h != nil {
		m.touch(h)
	}
	if asked.customer != "" && m.openHolds(asked.customer) >= modelHoldLimit {
		return "hold_limit"
	}
	return m.choose(key, asked)
}

// again is the answer that repeats an earlier one: with its token while it is held by the one that made it.
func (m *ledgerModel) again(code string, h *modelHold) string {
	return fmt.Sprintf("%s: hold %d %s, token %v", code, h.number, m.shown(h), m.live(h) && h.generation == 1)
}

func (m *ledgerModel) openHolds(customer string) (n int) {
	for _, h := range m.holds {
		if m.live(h) && h.order.customer == customer {
			n++
		}
	}
	return n
}

// choose takes the smallest server that fits.
func (m *ledgerModel) choose(key string, asked modelOrder) string {
	best, matching, held := -1, 0, 0
	for i, s := range m.servers {
		if s.state != inventory.StateReady || s.mib < asked.mib {
			continue
		}
		matching++
		h, b := m.onServer(i)
		switch {
		case h != nil && m.live(h):
			held++
		case b == nil && (best < 0 || s.mib < m.servers[best].mib):
			best = i
		}
	}
	switch {
	case best >= 0:
		return m.take(key, asked, best)
	case matching == 0:
		return "nothing_matches"
	case held > 0:
		return "all_held"
	default:
		return "all_sold"
	}
}

func (m *ledgerModel) take(key string, asked modelOrder, server int) string {
	if h, _ := m.onServer(server); h != nil {
		m.touch(h)
	}
	h := &modelHold{
		number: len(m.holds), order: asked, server: server, state: reservation.StateHeld, generation: 1,
		until: m.now.Add(holdTime), max: m.now.Add(modelCeiling),
	}
	m.holds = append(m.holds, h)
	m.keys[key] = h
	return fmt.Sprintf("reserved: hold %d on server %d until %s", h.number, server, sinceCurtain(h.until))
}

func sinceCurtain(t time.Time) string { return t.Sub(curtain).String() }

// change is what all changes of a hold have in common: the dead hold is moved aside, then the token is looked at (0: none
// was shown), then the state.
func (m *ledgerModel) change(h *modelHold, token int64) string {
	m.touch(h)
	switch {
	case token != 0 && token != h.generation:
		return "not holder"
	case h.state == reservation.StateConverted:
		return "converted"
	case h.state != reservation.StateHeld:
		return string(h.state)
	default:
		return ""
	}
}

func (m *ledgerModel) renew(h *modelHold, token int64) string {
	if refusal := m.change(h, token); refusal != "" {
		return refusal
	}
	until := m.now.Add(holdTime)
	if until.After(h.max) {
		until = h.max
	}
	if !until.After(h.until) {
		return "renewal limit"
	}
	h.until = until
	return "until " + sinceCurtain(until)
}

func (m *ledgerModel) cancel(h *modelHold, token int64) string {
	switch refusal := m.change(h, token); refusal {
	case "":
		h.state = reservation.StateCancelled
		return "cancelled"
	default:
		return refusal // an ended one is answered with its state, which is no refusal
	}
}

func (m *ledgerModel) convert(h *modelHold, token int64, service string) string {
	m.touch(h)
	if (token == 0 || token == h.generation) && h.state == reservation.StateConverted && h.binding.service == service {
		return fmt.Sprintf("repeated: binding %d", h.binding.number)
	}
	if refusal := m.change(h, token); refusal != "" {
		return refusal
	}
	if slices.ContainsFunc(m.bindings, func(b *modelBinding) bool { return b.active && b.service == service }) {
		return "service bound"
	}
	h.state = reservation.StateConverted
	h.binding = &modelBinding{number: len(m.bindings), hold: h, service: service, active: true}
	m.bindings = append(m.bindings, h.binding)
	return fmt.Sprintf("binding %d", h.binding.number)
}

func (m *ledgerModel) takeOver(h *modelHold) string {
	if refusal := m.change(h, 0); refusal != "" {
		return refusal
	}
	h.generation++
	return fmt.Sprintf("generation %d", h.generation)
}

func (m *ledgerModel) end(b *modelBinding) string {
	if b.active {
		b.active = false
		m.servers[b.hold.server].state = inventory.StateCleaning
	}
	return "ended"
}

func (m *ledgerModel) setState(server int, state inventory.State, force bool) string {
	h, b := m.onServer(server)
	if h != nil && m.dead(h) {
		m.touch(h)
		h = nil
	}
	s := m.servers[server]
	switch {
	case s.state == state:
	case (h != nil || b != nil) && !force:
		return "in use"
	default:
		if h != nil {
			h.state = reservation.StateCancelled
		}
		s.state = state
	}
	return string(s.state)
}

// sweep moves what is dead, and tells how many.
func (m *ledgerModel) sweep() (moved int) {
	for _, h := range m.holds {
		if m.dead(h) {
			m.touch(h)
			moved++
		}
	}
	return moved
}

// String is all that stands, as standingSQL reads it from a database.
func (m *ledgerModel) String() string {
	var lines []string
	for i, s := range m.servers {
		lines = append(lines, fmt.Sprintf("server %d %s", i, s.state))
	}
	for _, h := range m.holds {
		line := fmt.Sprintf("hold %d of %s on server %d %s until %d generation %d", h.number, h.order.order, h.server, h.state, h.until.UnixMicro(), h.generation)
		if h.binding != nil {
			line += fmt.Sprintf(", for %s, active %v", h.binding.service, h.binding.active)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// standingSQL is all that stands in an organization, on a desk. Servers are numbered by their size.
const standingSQL = `WITH numbered AS (SELECT id, state, row_number() OVER (ORDER BY memory_mib) - 1 AS number FROM servers)
	SELECT line FROM (
		SELECT 1 AS part, number, format('server %s %s', number, state) AS line FROM numbered
		UNION ALL
		SELECT 2, r.number, format('hold %s of %s on server %s %s until %s generation %s', r.number, r.order_id, n.number, r.state,
				(extract(epoch FROM r.expires_at) * 1000000)::bigint, r.generation)
			|| coalesce((SELECT format(', for %s, active %s', service_id, (ended_at IS NULL)::text) FROM bindings b WHERE b.reservation_id = r.id), '')
		FROM (SELECT h.id, h.order_id, h.server_id, h.state, h.expires_at, h.generation, row_number() OVER (ORDER BY h.id) - 1 AS number
			FROM reservations h) r JOIN numbered n ON n.id = r.server_id
	) lines ORDER BY part, number`
