//go:build gates

package concurrency_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// contest is what two sessions want at the same time. {a} and {b} are servers, free unless given says otherwise.
type contest struct {
	name   string
	given  []string
	first  side
	second side
	// outcomes tells whose effect may stand in the end: "first", "second", "both" (one after the other) or "none".
	outcomes []string
}

// side is what one session does in one transaction, and the condition by which its effect is known afterwards.
type side struct {
	steps  []string
	effect string
}

// The sides. An owner's name ends the names of its order, its service and its rows.
func holds(server, owner string) side {
	return side{
		[]string{holdRow("{"+server+"}", "{order"+owner+"}").with("id", "{res"+owner+"}").into("reservations")},
		"EXISTS (SELECT FROM reservations WHERE id = {res" + owner + "})",
	}
}

func binds(server, owner string) side {
	return side{
		[]string{directRow("{"+server+"}", "{service"+owner+"}").with("id", "{bnd"+owner+"}").into("bindings")},
		"EXISTS (SELECT FROM bindings WHERE id = {bnd" + owner + "} AND ended_at IS NULL)",
	}
}

// converts turns the hold of {a} that is given into a binding.
func converts(owner string) side {
	return side{
		[]string{
			bindingRow("{resheld}", "{a}", "{orderheld}", "{service"+owner+"}").with("id", "{bnd"+owner+"}").into("bindings"),
			end("converted", "{resheld}"),
		},
		"EXISTS (SELECT FROM bindings WHERE id = {bnd" + owner + "} AND ended_at IS NULL)",
	}
}

func (s side) stateFirst() side {
	steps := slices.Clone(s.steps)
	slices.Reverse(steps)
	return side{steps, s.effect}
}

func ends(state string) side {
	return side{[]string{end(state, "{resheld}")}, "EXISTS (SELECT FROM reservations WHERE id = {resheld} AND state = '" + state + "')"}
}

// guarded is the UPDATE that looks at state and time itself, as the sweep's does.
func (s side) guarded() side {
	return side{[]string{s.steps[0] + " AND state = 'held'"}, s.effect}
}

func (s side) then(next side) side {
	return side{append(slices.Clone(s.steps), next.steps...), s.effect + " AND " + next.effect}
}

var (
	givenHeld  = holds("a", "held").steps
	givenBound = binds("a", "bound").steps
	endsBound  = side{[]string{endBinding("{bndbound}")}, "EXISTS (SELECT FROM bindings WHERE id = {bndbound} AND ended_at IS NOT NULL)"}

	either     = []string{"first", "second"}
	onlySecond = []string{"second"}
	inTurn     = []string{"second", "both"}
)

var contests = []contest{
	{"hold against hold", nil, holds("a", "x"), holds("a", "y"), either},
	{"hold against a hold that yields", nil, holds("a", "x"), side{[]string{holds("a", "y").steps[0] + " ON CONFLICT DO NOTHING"}, holds("a", "y").effect}, either},
	{"hold against direct binding", nil, holds("a", "x"), binds("a", "y"), either},
	{"direct binding against direct binding", nil, binds("a", "x"), binds("a", "y"), either},
	{
		"one order line on two servers", nil, holds("a", "x"),
		side{[]string{holdRow("{b}", "{orderx}").with("id", "{resy}").into("reservations")}, "EXISTS (SELECT FROM reservations WHERE id = {resy})"},
		either,
	},
	{
		"one key on two servers", nil,
		side{[]string{holdRow("{a}", "{orderx}").with("id", "{resx}", "idempotency_key", "{key}").into("reservations")}, holds("a", "x").effect},
		side{[]string{holdRow("{b}", "{ordery}").with("id", "{resy}", "idempotency_key", "{key}").into("reservations")}, holds("b", "y").effect},
		either,
	},
	{
		"one service on two servers", nil, binds("a", "x"),
		side{[]string{directRow("{b}", "{servicex}").with("id", "{bndy}").into("bindings")}, "EXISTS (SELECT FROM bindings WHERE id = {bndy})"},
		either,
	},
	{crossed, nil, holds("a", "x").then(holds("b", "xx")), holds("b", "y").then(holds("a", "yy")), either},
	{refusedAtOnce, holds("b", "moving").steps, side{[]string{"UPDATE reservations SET server_id = {a} WHERE id = {resmoving}"}, "EXISTS (SELECT FROM reservations WHERE id = {resmoving} AND server_id = {a})"}, holds("a", "x"), onlySecond},
	{"hold against conversion", givenHeld, holds("a", "x"), converts("y"), onlySecond},
	{"hold against conversion, state first", givenHeld, holds("a", "x"), converts("y").stateFirst(), onlySecond},
	{"a hold that yields against conversion", givenHeld, side{[]string{holds("a", "x").steps[0] + " ON CONFLICT DO NOTHING"}, holds("a", "x").effect}, converts("y"), onlySecond},
	{"direct binding against conversion", givenHeld, binds("a", "x"), converts("y"), onlySecond},
	{"hold against cancellation", givenHeld, holds("a", "x"), ends("cancelled"), inTurn},
	{"hold against expiry", givenHeld, holds("a", "x"), ends("expired").guarded(), inTurn},
	{"direct binding against cancellation", givenHeld, binds("a", "x"), ends("cancelled"), inTurn},
	{"conversion against cancellation", givenHeld, converts("x"), ends("cancelled"), either},
	{"conversion against expiry by UPDATE", givenHeld, converts("x"), ends("expired").guarded(), either},
	{"conversion, state first, against cancellation", givenHeld, converts("x").stateFirst(), ends("cancelled"), either},
	{"conversion against conversion", givenHeld, converts("x"), converts("y"), either},
	{"cancellation against expiry", givenHeld, ends("cancelled"), ends("expired"), either},
	{"hold against the end of a binding", givenBound, holds("a", "x"), endsBound, inTurn},
	{"direct binding against the end of a binding", givenBound, binds("a", "x"), endsBound, inTurn},
	{"two that both expire and hold", givenHeld, ends("expired").guarded().then(holds("a", "x")), ends("expired").guarded().then(holds("a", "y")), either},
}

const (
	// refusedAtOnce is the one contest in which a rule speaks before anybody could wait.
	refusedAtOnce = "UPDATE of server_id against hold"
	// crossed is the one contest whose sides lock in different orders, so that the database has to break them up.
	crossed = "two servers in opposite order"
)

var levels = []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}

// Two sessions with no application code between them and the database, forced into every order of their statements, at
// every isolation level: at no instant, and not in the end, has a server two owners or an order line two servers, and
// occupancy says what the rows say. Who may win is known for each contest, and each who may has won.
//
// Requirements: R01, R05, R07, R48, R49, R60
func TestTwoSessionsInEveryOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("contests", func(t *testing.T) {
		for _, c := range contests {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				for _, level := range levels {
					c.every(t, w, level)
				}
			})
		}
	})
	w.soundRows()
}

// every plays the contest in each order.
func (c contest) every(t *testing.T, w *world, level string) {
	t.Helper()
	w = &world{t: t, ctx: t.Context(), url: w.url, pool: w.pool}
	first, second := w.session(), w.session()
	for _, s := range []*session{first, second} {
		s.do(`SELECT set_config('deadlock_timeout', '20ms', false) FROM pg_roles WHERE rolname = current_user AND rolsuper`)
	}
	seen, waits := map[string]int{}, 0
	for _, order := range orders(len(c.first.steps)+2, len(c.second.steps)+2) {
		m := newMatch(t, w, c, level, first, second)
		m.play(order)
		seen[m.outcome()]++
		waits += m.waits
	}
	t.Logf("%s: %v, waited %d times", level, seen, waits)
	c.judge(t, level, seen)
	if c.name != refusedAtOnce {
		require.NotZero(t, waits, "nobody ever waited for anybody: nothing was contested")
	}
}

// judge asserts that only allowed outcomes came about, and that each of them did. A serialization failure may take both.
func (c contest) judge(t *testing.T, level string, seen map[string]int) {
	t.Helper()
	for outcome := range seen {
		if level == "READ COMMITTED" || outcome != "none" {
			require.Contains(t, c.outcomes, outcome, "%s: %v", level, seen)
		}
	}
	for _, outcome := range c.outcomes {
		require.NotZero(t, seen[outcome], "%s: never came to %s: %v", level, outcome, seen)
	}
}

// orders lists every way of putting the steps of two sides one after the other; true is a step of the first.
func orders(first, second int) [][]bool {
	switch {
	case first == 0:
		return [][]bool{make([]bool, second)}
	case second == 0:
		return [][]bool{slices.Repeat([]bool{true}, first)}
	}
	var list [][]bool
	for _, rest := range orders(first-1, second) {
		list = append(list, append([]bool{true}, rest...))
	}
	for _, rest := range orders(first, second-1) {
		list = append(list, append([]bool{false}, rest...))
	}
	return list
}

// match is one run of a contest, with ids of its own.
type match struct {
	*world
	c       contest
	run     string // ends every name, so that runs do not meet
	players [2]*player
	waits   int
}

// player is one side at work.
type player struct {
	*session
	steps  []string
	due    int        // steps that the order has called for and that are not sent yet
	answer chan error // of the step that was sent and is not answered
	failed error

	mayDeadlock bool
}

func newMatch(t *testing.T, w *world, c contest, level string, first, second *session) *match {
	t.Helper()
	m := &match{world: w, c: c, run: uuid.NewString()}
	m.exec(m.fill(`INSERT INTO servers (organization_id, id, source, external_id, site, state)
		SELECT 'acme', id, 'test', id::text, 'FSN1', 'ready' FROM unnest(ARRAY[{a}, {b}]::uuid[]) AS id`))
	for _, sql := range c.given {
		m.exec(m.fill(sql))
	}
	for i, s := range []side{c.first, c.second} {
		// The first step takes the snapshot of a transaction that keeps one.
		steps := []string{"BEGIN ISOLATION LEVEL " + level + "; SELECT 1"}
		for _, sql := range s.steps {
			steps = append(steps, m.fill(sql))
		}
		m.players[i] = &player{session: []*session{first, second}[i], steps: append(steps, "COMMIT"), mayDeadlock: c.name == crossed}
	}
	return m
}

// fill puts the ids of this run in place of the names.
func (m *match) fill(sql string) string {
	return named.ReplaceAllStringFunc(sql, func(name string) string {
		return "'" + uuid.NewSHA1(uuid.Nil, []byte(name+m.run)).String() + "'"
	})
}

// play takes the steps in the given order. A session that waits for the other one cannot take its step yet: it takes it
// as soon as it is free.
func (m *match) play(order []bool) {
	m.t.Helper()
	for _, first := range order {
		mover := m.players[1]
		if first {
			mover = m.players[0]
		}
		mover.due++
		committed := m.committed()
		for m.advance() {
			m.settle()
		}
		if m.committed() != committed {
			m.sound() // nothing else changes what others see
		}
	}
	for _, p := range m.players {
		require.Zero(m.t, p.due)
		require.Nil(m.t, p.answer)
	}
}

// committed counts the sides that have come to their end.
func (m *match) committed() (n int) {
	for _, p := range m.players {
		if len(p.steps) == 0 && p.answer == nil {
			n++
		}
	}
	return n
}

// advance sends the next step of whoever is free and due.
func (m *match) advance() (sent bool) {
	for _, p := range m.players {
		if p.answer == nil && p.due > 0 {
			p.send()
			sent = true
		}
	}
	return sent
}

func (p *player) send() {
	sql := p.steps[0]
	p.steps, p.due = p.steps[1:], p.due-1
	if p.failed != nil {
		if sql != "COMMIT" {
			return // the transaction has failed; its end is still to come
		}
		sql = "ROLLBACK"
	}
	p.answer = make(chan error, 1)
	go func() {
		_, err := p.conn.PgConn().Exec(p.w.ctx, sql).ReadAll()
		p.answer <- err
	}()
}

// settle returns when each session has answered or waits for one that has. If both wait for each other the database
// breaks it up.
func (m *match) settle() {
	m.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		busy := 0
		for _, p := range m.players {
			if p.answer == nil {
				continue
			}
			select {
			case err := <-p.answer:
				p.answered(m.t, err)
			case <-time.After(200 * time.Microsecond):
				busy++
			}
		}
		switch {
		case busy == 0:
			return
		case busy == 1 && m.isWaiting():
			m.waits++
			return
		}
		require.True(m.t, time.Now().Before(deadline), "a statement neither answers nor waits")
	}
}

// isWaiting tells whether the one session that is at work waits for the other.
func (m *match) isWaiting() bool {
	for i, p := range m.players {
		if p.answer != nil {
			return slices.Contains(blockers(m.world, p.pid()), int32(m.players[1-i].pid()))
		}
	}
	return false
}

// answered notes a refusal, which is one of those that the schema or the isolation level gives.
func (p *player) answered(t *testing.T, err error) {
	t.Helper()
	p.answer = nil
	if err == nil {
		return
	}
	code, constraint := refusal(err)
	require.Contains(t, []string{unique, check, "40001", "40P01"}, code, "%v", err)
	require.True(t, p.mayDeadlock || code != "40P01", "they lock in different orders: %v", err)
	require.Equal(t, code == unique || code == check, constraint != "", "%v", err)
	p.failed = err
}

// sound looks at everything that has been committed by now.
func (m *match) sound() {
	m.t.Helper()
	require.Empty(m.t, one[string](m.world, m.fill(unsoundSQL)), m.run)
}

// unsoundSQL tells in one snapshot what is wrong with the two servers of a run.
const unsoundSQL = `WITH owners AS (
		SELECT server_id, order_id, order_line, unit, id AS reservation_id, NULL::uuid AS binding_id
		FROM reservations WHERE organization_id = 'acme' AND server_id IN ({a}, {b}) AND state = 'held'
		UNION ALL SELECT server_id, order_id, order_line, unit, NULL, id
		FROM bindings WHERE organization_id = 'acme' AND server_id IN ({a}, {b}) AND ended_at IS NULL
	), wrong AS (
		SELECT 'two owners' AS what FROM owners GROUP BY server_id HAVING count(*) > 1
		UNION ALL SELECT 'an order line with two servers' FROM owners WHERE order_id IS NOT NULL GROUP BY order_id, order_line, unit HAVING count(*) > 1
		UNION ALL SELECT 'occupancy is not the owners' FROM (
			(SELECT server_id, order_id, order_line, unit, reservation_id, binding_id FROM occupancy WHERE organization_id = 'acme' AND server_id IN ({a}, {b})
				EXCEPT TABLE owners)
			UNION ALL (TABLE owners
				EXCEPT SELECT server_id, order_id, order_line, unit, reservation_id, binding_id FROM occupancy WHERE organization_id = 'acme' AND server_id IN ({a}, {b}))) x
		UNION ALL SELECT 'converted is not bound' FROM reservations r WHERE organization_id = 'acme' AND server_id IN ({a}, {b})
			AND (state = 'converted') <> EXISTS (SELECT FROM bindings b WHERE b.organization_id = 'acme' AND b.reservation_id = r.id)
	) SELECT coalesce(string_agg(what, ', '), '') FROM wrong`

// outcome tells whose effect stands.
func (m *match) outcome() string {
	m.t.Helper()
	effects := one[[]bool](m.world, m.fill("SELECT ARRAY["+m.c.first.effect+", "+m.c.second.effect+"]"))
	first, second := effects[0], effects[1]
	for i, stands := range effects {
		require.False(m.t, stands && m.players[i].failed != nil, "it was refused and stands: %v", m.players[i].failed)
	}
	switch {
	case first && second:
		return "both"
	case first:
		return "first"
	case second:
		return "second"
	default:
		return "none"
	}
}
