//go:build gates

package concurrency_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/reservation"
)

// The arbiter is in the database: whoever inserts a second held row for a server is refused by an index of that name,
// with no application between the two.
//
// Requirements: R04, R05
func TestTheArbiterIsInTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.server(1024)
	first, second := w.session(), w.session()
	first.hold(server, "a")
	err := second.try(strings.Replace(rawHold, "'test', '{}'", "'other', '{}'", 1), org, server, server, "raw-b")
	requireRefused(t, err, "23505", "reservations_one_held_per_server")
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations`))

	definition := one[string](w, `SELECT pg_get_indexdef('reservations_one_held_per_server'::regclass)`)
	require.Regexp(t, `^CREATE UNIQUE INDEX .* \(organization_id, server_id\) WHERE \(state = 'held'::text\)$`, definition)
	require.True(t, one[bool](w, `SELECT indisvalid AND indisready AND indimmediate FROM pg_index WHERE indexrelid = 'reservations_one_held_per_server'::regclass`))
	w.soundRows()
}

// Which states keep a server from others is said three times: in a table, in the index and in Go. They agree, and there
// are four states, of which expired and cancelled are two.
//
// Requirements: R08, R09, R11, R12
func TestStatesTableIndexAndGoAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.session().do(`BEGIN`)
	require.Empty(t, disagreements(s))
	require.Equal(t, []reservation.State{"held", "converted", "expired", "cancelled"}, reservation.States())
}

// If only one side changed, that comparison would tell.
//
// Requirements: R09
func TestOneSideChangedAloneIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tests := map[string][]string{
		"the table says that converted holds":    {`UPDATE reservation_states SET holds_server = true WHERE state = 'converted'`},
		"the table forgets that held holds":      {`UPDATE reservation_states SET holds_server = false WHERE state = 'held'`},
		"the table knows a fifth state":          {`INSERT INTO reservation_states VALUES ('released', false)`},
		"the table lacks one":                    {`DELETE FROM reservation_states WHERE state = 'expired'`},
		"the index also arbitrates converted":    {`DROP INDEX reservations_one_held_per_server`, `CREATE UNIQUE INDEX reservations_one_held_per_server ON reservations (organization_id, server_id) WHERE state IN ('held', 'converted')`},
		"the index arbitrates something else":    {`DROP INDEX reservations_one_held_per_server`, `CREATE UNIQUE INDEX reservations_one_held_per_server ON reservations (organization_id, server_id) WHERE state = 'expired'`},
		"the constraint lets a fifth state pass": {`ALTER TABLE reservations DROP CONSTRAINT reservations_state_known, ADD CONSTRAINT reservations_state_known CHECK (state IN ('held', 'converted', 'expired', 'cancelled', 'released'))`},
	}
	s := w.session()
	for name, changes := range tests {
		s.do(`BEGIN`)
		for _, sql := range changes {
			s.do(sql)
		}
		require.NotEmpty(t, disagreements(s), name)
		s.rollback()
		s.do(`BEGIN`)
		require.Empty(t, disagreements(s), "after %s was taken back", name)
		s.rollback()
	}
}

// disagreements evaluates the index's predicate and the constraint, as they stand in the catalog, for every state of the
// table and of Go, and for one that is none.
func disagreements(s *session) (found []string) {
	s.w.t.Helper()
	predicate := value[string](s, `SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = 'reservations_one_held_per_server'::regclass`)
	known := value[string](s, `SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint WHERE conname = 'reservations_state_known'`)
	rows, err := s.conn.Query(s.w.ctx, fmt.Sprintf(`SELECT state, t.holds_server, %s, %s
		FROM reservation_states t FULL JOIN unnest($1::text[]) AS asked (state) USING (state)`, predicate, known), append(states(), "released"))
	require.NoError(s.w.t, err)
	answers, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		State                 reservation.State
		InTable               *bool
		InIndex, InConstraint bool
	}])
	require.NoError(s.w.t, err)
	for _, a := range answers {
		listed := a.InTable != nil
		if listed != a.State.Valid() || a.InConstraint != a.State.Valid() {
			found = append(found, fmt.Sprintf("%s: in the table %v, for the constraint %v, in Go %v", a.State, listed, a.InConstraint, a.State.Valid()))
		}
		if a.InIndex != a.State.Holds() || listed && *a.InTable != a.State.Holds() {
			found = append(found, fmt.Sprintf("%s holds: index %v, Go %v, table %v", a.State, a.InIndex, a.State.Holds(), a.InTable))
		}
	}
	return found
}

func states() (list []string) {
	for _, state := range reservation.States() {
		list = append(list, string(state))
	}
	return list
}

// Nothing beside the state tells whether a reservation holds: the table has no boolean, and no column of such a name.
//
// Requirements: R08, R10
func TestNoBooleanStandsBesideTheState(t *testing.T) {
	t.Parallel()
	s := newWorld(t).session()
	require.Empty(t, column[string](s, `SELECT column_name::text FROM information_schema.columns
		WHERE table_name = 'reservations' AND (data_type = 'boolean' OR column_name ~ '(^is_|active|released|deleted|held$|free)')`))
	require.NotEmpty(t, column[string](s, `SELECT column_name::text FROM information_schema.columns WHERE table_name = 'reservations' AND column_name = 'state'`))
}

// A fifth state is refused, however it is spelled, and whether a row begins with it or comes to it.
//
// Requirements: R11, R12
func TestAFifthStateIsRefused(t *testing.T) {
	t.Parallel()
	s := stocked(t).session()
	for _, state := range []string{"released", "HELD", "held ", "", "bound"} {
		requireRefused(t, s.try(fill(holdRow("{free}", "'x'").with("state", "'"+state+"'").into("reservations"))), "23514", "reservations_start_held")
		requireRefused(t, s.try(fill(end(state, "{holding}"))), "23514", "reservations_state_known")
	}
	requireRefused(t, s.try(fill(`UPDATE reservations SET state = NULL WHERE id = {holding}`)), "23502", "")
}

// Transitions only leave held: from each final state, each other one is refused, and every final row says when and by
// whom. The sweep cancels nothing.
//
// Requirements: R13, R14
func TestTransitionsOnlyLeaveHeld(t *testing.T) {
	t.Parallel()
	w := stocked(t)
	s := w.session()
	s.do(fill(holdRow("{spare}", "'cancelled'").with("id", "{cancelled}").into("reservations")))
	s.do(fill(end("cancelled", "{cancelled}")))
	for from, id := range map[string]string{"converted": "{converted}", "expired": "{expired}", "cancelled": "{cancelled}"} {
		require.Equal(t, from, value[string](s, fill(`SELECT state FROM reservations WHERE id = `+id)))
		for _, to := range states() {
			sql := end(to, id)
			if to == "held" {
				sql = `UPDATE reservations SET state = 'held', ended_at = NULL, ended_by_kind = NULL WHERE id = ` + id
			}
			requireRefused(t, s.try(fill(sql)), "23514", "reservations_final_is_final")
		}
	}
	for _, incomplete := range []string{
		`UPDATE reservations SET state = 'expired' WHERE id = {holding}`,
		`UPDATE reservations SET state = 'expired', ended_at = clock_timestamp() WHERE id = {holding}`,
		`UPDATE reservations SET state = 'cancelled', ended_by_kind = 'person' WHERE id = {holding}`,
		`UPDATE reservations SET ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE id = {holding}`,
	} {
		requireRefused(t, s.try(fill(incomplete)), "23514", "reservations_final_is_complete")
	}
	swept := strings.Replace(end("cancelled", "{holding}"), "'person'", "'sweep'", 1)
	requireRefused(t, s.try(fill(swept)), "23514", "reservations_sweep_only_expires")
	require.Equal(t, 1, s.affected(fill(end("cancelled", "{holding}"))), "and a person may")
}

// shape is one way of writing a hold in SQL.
type shape struct {
	name string
	sql  func(hold row) []string // in one transaction
	held string                  // the constraint that refuses it for a held server; "" if nothing is inserted silently
	sold string                  // and for a bound one
}

const (
	byIndex     = "reservations_one_held_per_server"
	byOccupancy = "occupancy_one_per_server"
)

var shapes = []shape{
	{"INSERT", func(h row) []string { return []string{h.into("reservations")} }, byIndex, byOccupancy},
	{"INSERT … SELECT", func(h row) []string { return []string{h.from("servers WHERE id = " + h["server_id"])} }, byIndex, byOccupancy},
	{"three rows in one statement", func(h row) []string { return []string{h.from("generate_series(1, 3)")} }, byIndex, byIndex},
	{"a CTE that writes", func(h row) []string {
		return []string{"WITH made AS (" + h.into("reservations") + " RETURNING id) SELECT count(*) FROM made"}
	}, byIndex, byOccupancy},
	{"a CTE that locks and inserts", func(h row) []string {
		return []string{"WITH locked AS (SELECT FROM servers WHERE id = " + h["server_id"] + " FOR UPDATE SKIP LOCKED) " + h.from("locked")}
	}, byIndex, byOccupancy},
	{"ON CONFLICT DO NOTHING", func(h row) []string { return []string{h.into("reservations") + " ON CONFLICT DO NOTHING"} }, "", byOccupancy},
	{"ON CONFLICT DO UPDATE of the order", func(h row) []string {
		return []string{h.into("reservations") + " ON CONFLICT (organization_id, server_id) WHERE state = 'held' DO UPDATE SET order_id = excluded.order_id"}
	}, "reservations_identity_fixed", byOccupancy},
	{"MERGE that inserts", func(h row) []string {
		return []string{"MERGE INTO reservations USING (VALUES (1)) one ON false WHEN NOT MATCHED THEN INSERT (" + h.columns() + ") VALUES (" + h.values() + ")"}
	}, byIndex, byOccupancy},
	{"a DO block", func(h row) []string { return []string{"DO $$ BEGIN " + h.into("reservations") + "; END $$"} }, byIndex, byOccupancy},
	{"a DO block that swallows errors", func(h row) []string {
		return []string{"DO $$ BEGIN " + h.into("reservations") + "; EXCEPTION WHEN OTHERS THEN NULL; END $$"}
	}, "", ""},
	{"a savepoint that is released", func(h row) []string {
		return []string{"SAVEPOINT x", h.into("reservations"), "RELEASE SAVEPOINT x"}
	}, byIndex, byOccupancy},
	{"a prepared statement", func(h row) []string {
		name := "hold_" + strings.ToLower(rand.Text()) // one outlives its transaction
		return []string{"PREPARE " + name + " AS " + h.into("reservations"), "EXECUTE " + name}
	}, byIndex, byOccupancy},
	{"a view", func(h row) []string {
		return []string{"CREATE TEMP VIEW mine AS TABLE reservations", h.into("mine")}
	}, byIndex, byOccupancy},
	{"a trigger of somebody's own", func(h row) []string {
		return []string{
			"CREATE TEMP TABLE wishes (n int)",
			"CREATE FUNCTION pg_temp.grant_wish() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + h.into("reservations") + "; RETURN NULL; END $$",
			"CREATE TRIGGER grant_wish AFTER INSERT ON wishes FOR EACH ROW EXECUTE FUNCTION pg_temp.grant_wish()",
			"INSERT INTO wishes VALUES (1)",
		}
	}, byIndex, byOccupancy},
	{"constraints deferred", func(h row) []string { return []string{"SET CONSTRAINTS ALL DEFERRED", h.into("reservations")} }, byIndex, byOccupancy},
	{"a session's own tables of the same names", func(h row) []string {
		return []string{
			"CREATE TEMP TABLE occupancy (LIKE public.occupancy)", "CREATE TEMP TABLE bindings (LIKE public.bindings)",
			"CREATE TEMP TABLE servers (LIKE public.servers)", h.into("public.reservations"),
		}
	}, byIndex, byOccupancy},
	{"a schema in front, with tables and operators of the same names", func(h row) []string {
		return []string{
			"CREATE SCHEMA front", "SET LOCAL search_path = front, public", "CREATE TABLE front.occupancy (LIKE public.occupancy)",
			"CREATE FUNCTION front.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
			"CREATE OPERATOR front.= (FUNCTION = front.never, LEFTARG = text, RIGHTARG = text)", h.into("public.reservations"),
		}
	}, byIndex, byOccupancy},
	{"another session setting", func(h row) []string {
		return []string{"SET LOCAL check_function_bodies = off", "SET LOCAL row_security = off", h.into("reservations")}
	}, byIndex, byOccupancy},
}

// However a hold of a held or a sold server is written, and at whatever isolation level, it is refused or comes to
// nothing.
//
// Requirements: R05, R07
func TestNoStatementGetsAroundTheArbiter(t *testing.T) {
	t.Parallel()
	w := stocked(t)
	s := w.session()
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		for _, way := range shapes {
			for owner, want := range map[string]string{"{held}": way.held, "{sold}": way.sold, "{given}": way.sold} {
				name := fmt.Sprintf("%s of %s at %s", way.name, owner, level)
				err := s.transaction(level, way.sql(holdRow(owner, "'new'"))...)
				if want == "" {
					require.NoError(t, err, name)
				} else {
					_, constraint := refusal(err)
					require.Equal(t, want, constraint, "%s: %v", name, err)
				}
				require.Zero(t, value[int](s, `SELECT count(*) FROM reservations WHERE order_id = 'new'`), name)
			}
			if way.sold == byOccupancy { // the same words get a free server: it is not the words that are refused
				require.NoError(t, s.transaction(level, append(way.sql(holdRow("{free}", "'free'")), "ROLLBACK")...), way.name)
			}
		}
	}
	w.soundRows()
}

// transaction runs statements in one transaction and commits it, or rolls it back at the first error.
func (s *session) transaction(level string, statements ...string) error {
	s.w.t.Helper()
	defer s.rollback()
	s.do(`BEGIN ISOLATION LEVEL ` + level)
	for _, sql := range statements {
		if err := s.try(fill(sql)); err != nil {
			return err
		}
	}
	return s.try(`COMMIT`)
}

// COPY is refused as INSERT is, and leaves nothing of the rows before.
//
// Requirements: R05, R07
func TestCopyIsRefusedToo(t *testing.T) {
	t.Parallel()
	w := stocked(t)
	s := w.session()
	for owner, want := range map[string]string{"{held}": byIndex, "{sold}": byOccupancy, "{given}": byOccupancy} {
		s.do(`BEGIN`)
		s.do(`CREATE TEMP TABLE typed ON COMMIT DROP AS TABLE reservations WITH NO DATA`)
		s.do(`ALTER TABLE typed DROP COLUMN changed_by`)
		for _, server := range []string{"{free}", owner} {
			s.do(fill(holdRow(server, "'copied'").with("created_at", "now()", "state", "'held'", "fence", "1", "generation", "1", "version", "1").into("typed")))
		}
		rows, err := s.conn.Query(w.ctx, `TABLE typed`)
		require.NoError(t, err)
		columns := rows.FieldDescriptions()
		var names []string
		for _, c := range columns {
			names = append(names, c.Name)
		}
		typed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
		require.NoError(t, err)
		require.Len(t, typed, 2)
		_, err = s.conn.CopyFrom(w.ctx, pgx.Identifier{"reservations"}, names, pgx.CopyFromRows(typed))
		requireRefused(t, err, "23505", want)
		s.rollback()
		require.Zero(t, value[int](s, `SELECT count(*) FROM reservations WHERE order_id = 'copied'`))
	}
	w.soundRows()
}

// What a savepoint takes back is taken back whole: the server is free for the next one, in the same transaction and
// after it.
//
// Requirements: R07
func TestSavepointsTakeOccupancyBack(t *testing.T) {
	t.Parallel()
	w := stocked(t)
	s := w.session()
	s.do(`BEGIN`).do(fill(hold("{free}", "'first'"))).do(`SAVEPOINT one`)
	requireRefused(t, s.try(fill(hold("{free}", "'second'"))), "23505", byIndex)
	s.do(`ROLLBACK TO one`).do(fill(hold("{spare}", "'second'"))).do(`ROLLBACK TO one`).do(`COMMIT`)

	require.Equal(t, []string{"first"}, column[string](s, `SELECT order_id FROM reservations WHERE order_id IN ('first', 'second')`))
	s.do(fill(hold("{spare}", "'third'")))
	requireRefused(t, s.try(fill(hold("{free}", "'fourth'"))), "23505", byIndex)
	w.soundRows()
}

// One statement that ends an owner and makes the next one does both or neither, and never leaves two.
//
// Requirements: R07, R48
func TestHandingOverInOneStatement(t *testing.T) {
	t.Parallel()
	cancelled, ended := end("cancelled", "{holding}"), endBinding("{binding}")
	ways := map[string]string{
		"a hold for a hold":       "WITH ended AS (" + cancelled + " RETURNING id) " + holdRow("{held}", "'next'").from("ended"),
		"a hold for a binding":    "WITH ended AS (" + ended + " RETURNING id) " + holdRow("{sold}", "'next'").from("ended"),
		"a binding for a hold":    "WITH ended AS (" + cancelled + " RETURNING id) " + directRow("{held}", "'next'").bindFrom("ended"),
		"a binding for a binding": "WITH ended AS (" + ended + " RETURNING id) " + directRow("{sold}", "'next'").bindFrom("ended"),
	}
	for name, sql := range ways {
		w := stocked(t)
		if err := w.session().transaction("READ COMMITTED", sql); err != nil {
			code, _ := refusal(err)
			require.Equal(t, "23505", code, "%s: %v", name, err)
		}
		w.soundRows()
	}
}

// A person who types SQL is told what the rule is: every rule has a sentence, and the unique ones a name that says it.
//
// Requirements: R06
func TestRulesSpeak(t *testing.T) {
	t.Parallel()
	s := newWorld(t).session()
	sentences := column[string](s, `SELECT convert_from(substring(tgargs FOR length(tgargs) - 1), 'UTF8') FROM pg_trigger
		WHERE tgfoid = 'refuse'::regproc AND tgparentid = 0`)
	require.Greater(t, len(sentences), 20)
	for _, sentence := range sentences {
		require.Regexp(t, `^[A-Z].{20,}\.$`, sentence)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(sentences))), len(sentences), "two rules say the same")
}
