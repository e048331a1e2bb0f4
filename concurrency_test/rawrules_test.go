//go:build gates

package concurrency_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
)

// rule is one named rule of the schema and what somebody with psql tries against it, each try in a transaction of its
// own that is committed if nothing refuses it.
type rule struct {
	name     string
	code     string // SQLSTATE
	deferred bool   // it speaks at COMMIT
	tries    []string
}

const (
	check  = "23514"
	unique = "23505"
)

// changes are updates of one column each.
func changes(table, id string, set ...string) (tries []string) {
	for _, s := range set {
		tries = append(tries, fmt.Sprintf("UPDATE %s SET %s WHERE id = %s", table, s, id))
	}
	return tries
}

// then stands between statements that follow each other in one transaction; only the last may be refused.
const then = ";;"

var triggerRules = []rule{
	{"servers_are_kept", check, false, []string{"DELETE FROM servers WHERE id = {free}"}},
	{"servers_are_kept_all", check, false, []string{"TRUNCATE servers", "TRUNCATE servers CASCADE"}},
	{"servers_identity_fixed", check, false, changes("servers", "{free}", "id = gen_random_uuid()", "organization_id = 'other'")},

	{"reservations_start_held", check, false, []string{
		holdRow("{free}", "'x'").with("state", "'converted'", "ended_at", "now()", "ended_by_kind", "'person'").into("reservations"),
		holdRow("{free}", "'x'").with("state", "'expired'", "ended_at", "now()", "ended_by_kind", "'sweep'").into("reservations"),
	}},
	{"reservations_identity_fixed", check, false, changes("reservations", "{holding}",
		"organization_id = 'other'", "id = gen_random_uuid()", "server_id = {free}", "order_id = 'x'", "order_line = 'x'", "unit = 2",
		"idempotency_key = 'x'", "created_at = now()")},
	{"reservations_reason_frozen", check, false, append(changes("reservations", "{holding}",
		"reason = '{\"code\": \"x\"}'", "requirements = '{\"sites\": []}'", "server = '{\"v\": 2}'", "decision_id = gen_random_uuid()", "fingerprint = '\\x01'"),
		changes("reservations", "{converted}", "reason = '[]'", "server = '[]'")...)},
	{"reservations_final_is_final", check, false, append(changes("reservations", "{expired}",
		"state = 'held', ended_at = NULL, ended_by_kind = NULL", "state = 'cancelled'", "ended_at = now()", "ended_by_kind = 'key'",
		"ended_by = 'x'", "expires_at = expires_at - interval '1 minute'"),
		"UPDATE reservations SET state = 'expired' WHERE id = {converted}")},
	{"reservations_fence_grows", check, false, changes("reservations", "{holding}", "fence = 999", "generation = 4")},
	{"reservations_held_are_kept", check, false, []string{"DELETE FROM reservations WHERE id = {holding}", "DELETE FROM reservations"}},
	{"reservations_are_kept", check, false, []string{"TRUNCATE reservations", "TRUNCATE reservations, bindings, occupancy"}},
	{"reservations_occupy", check, false, []string{
		hold("gen_random_uuid()", "'x'"),
		hold("{theirs}", "'x'"),
		holdRow("{free}", "'x'").with("organization_id", "'other'").into("reservations"),
		"CREATE TEMP TABLE servers ON COMMIT DROP AS SELECT 'acme' AS organization_id, gen_random_uuid() AS id" + then +
			"INSERT INTO public.reservations (" + holdRow("", "'x'").columns() + ") SELECT " + holdRow("id", "'x'").with("organization_id", "'acme'", "id", "gen_random_uuid()").values() + " FROM pg_temp.servers",
	}},
	{"reservations_vacate", check, false, []string{
		bindingRow("{holding}", "{held}", "'held'", "'x'").into("bindings") + then + end("cancelled", "{holding}"),
		bindingRow("{holding}", "{held}", "'held'", "'x'").into("bindings") + then + end("expired", "{holding}"),
	}},
	{"reservations_converted_has_binding", check, true, []string{
		end("converted", "{holding}"),
		end("converted", "{holding}") + then + directRow("{free}", "'x'").into("bindings"),
		"CREATE TEMP TABLE bindings ON COMMIT DROP AS SELECT 'acme' AS organization_id, {holding}::uuid AS reservation_id" + then + end("converted", "{holding}"),
	}},

	{"bindings_start_active", check, false, []string{
		directRow("{free}", "'x'").with("ended_at", "now()", "ended_by_kind", "'person'").into("bindings"),
	}},
	{"bindings_identity_fixed", check, false, append(changes("bindings", "{binding}",
		"organization_id = 'other'", "id = gen_random_uuid()", "server_id = {free}", "service_id = 'x'", "reservation_id = {expired}",
		"order_id = 'x'", "order_line = 'x'", "unit = 2", "decided_at = decided_at - interval '1 second'",
		"hold_expires_at = hold_expires_at + interval '1 second'", "server = '[]'", "fence = fence + 1"),
		"UPDATE bindings SET reservation_id = NULL, order_id = NULL, order_line = NULL, unit = NULL, decided_at = NULL, hold_expires_at = NULL WHERE id = {binding}")},
	{"bindings_end_once", check, false, changes("bindings", "{ended}",
		"ended_at = NULL, ended_by_kind = NULL", "ended_at = now()", "ended_by_kind = 'key'", "ended_by = 'x'")},
	{"bindings_active_are_kept", check, false, []string{"DELETE FROM bindings WHERE id = {binding}", "DELETE FROM bindings WHERE id = {gift}"}},
	{"bindings_are_kept", check, false, []string{"TRUNCATE bindings"}},
	{"bindings_occupy", check, false, []string{
		directRow("gen_random_uuid()", "'x'").into("bindings"),
		directRow("{theirs}", "'x'").into("bindings"),
		bindingRow("{holding}", "{free}", "'held'", "'x'").into("bindings"),
		bindingRow("{holding}", "{held}", "'held'", "'x'").with("organization_id", "'other'").into("bindings"),
		bindingRow("{holding}", "{held}", "'x'", "'x'").into("bindings"),
		bindingRow("{holding}", "{held}", "'held'", "'x'").with("order_line", "'2'").into("bindings"),
		bindingRow("{holding}", "{held}", "'held'", "'x'").with("unit", "2").into("bindings"),
		bindingRow("{expired}", "{lapsed}", "'lapsed'", "'x'").into("bindings"),
		bindingRow("{expired}", "{held}", "'held'", "'x'").into("bindings"),
		bindingRow("gen_random_uuid()", "{free}", "'x'", "'x'").into("bindings"),
		end("cancelled", "{holding}") + then + bindingRow("{holding}", "{held}", "'held'", "'x'").into("bindings"),
		"CREATE TEMP TABLE occupancy ON COMMIT DROP AS SELECT 'acme' AS organization_id, {free}::uuid AS server_id, 'held' AS order_id, '1' AS order_line, 1::bigint AS unit, {holding}::uuid AS reservation_id, NULL::uuid AS binding_id" +
			then + bindingRow("{holding}", "{free}", "'held'", "'x'").into("bindings"),
	}},
	{"bindings_reservation_converted", check, true, []string{
		bindingRow("{holding}", "{held}", "'held'", "'x'").into("bindings"),
		"CREATE TEMP TABLE reservations ON COMMIT DROP AS SELECT 'acme' AS organization_id, {holding}::uuid AS id, 'converted' AS state" + then +
			bindingRow("{holding}", "{held}", "'held'", "'x'").into("bindings"),
	}},

	{"occupancy_by_triggers_only", check, false, []string{
		"INSERT INTO occupancy (organization_id, server_id, binding_id) VALUES ('acme', {free}, {gift})",
		"UPDATE occupancy SET server_id = {free} WHERE server_id = {held}",
		"UPDATE occupancy SET order_line = '2' WHERE server_id = {held}",
		"DELETE FROM occupancy WHERE server_id = {held}",
		"MERGE INTO occupancy o USING (VALUES (1)) one ON o.server_id = {held} WHEN MATCHED THEN DELETE",
		"WITH gone AS (DELETE FROM occupancy RETURNING *) SELECT FROM gone",
		"DO $$ BEGIN DELETE FROM occupancy; END $$",
	}},
	{"occupancy_is_kept", check, false, []string{"TRUNCATE occupancy"}},

	{"events_are_final", check, false, []string{"UPDATE events SET type = 'x'", "DELETE FROM events"}},
	{"decisions_are_final", check, false, []string{"UPDATE decisions SET outcome = 'x'", "DELETE FROM decisions"}},
	{"events_are_kept", check, false, []string{"TRUNCATE events"}},
	{"decisions_are_kept", check, false, []string{"TRUNCATE decisions"}},
	{"decision_lists_are_kept", check, false, []string{"TRUNCATE decision_lists"}},
	{"reservations_sold_are_kept", check, false, []string{"DELETE FROM reservations WHERE id = {converted}"}},
	{"bindings_of_reservations_are_kept", check, false, []string{
		"DELETE FROM reservations WHERE false" + then + endBinding("(SELECT id FROM bindings WHERE reservation_id = {converted})") + then +
			"DELETE FROM bindings WHERE reservation_id = {converted}",
	}},
	{"decision_lists_are_final", check, false, []string{"UPDATE decision_lists SET body = ''", "DELETE FROM decision_lists"}},
}

// quiet triggers never refuse; TestEveryChangeIsNoted and the tests of occupancy look at what they do.
var quiet = []string{"bindings_vacate", "bindings_note_change", "reservations_note_change", "servers_note_change"}

var checkRules = []rule{
	{"servers_values_are_readable", check, false, changes("servers", "{free}", "price_amount = 'NaN', price_currency = 'EUR'",
		"updated_at = 'infinity'", "created_at = '-infinity'", "tags = '{NULL}'", "cpu_benchmarks = '{\"a\": \"x\"}'",
		"attributes = '{\"a\": 1}'", "gpus = '[null]'")},
	{"reservations_values_are_readable", check, false, []string{
		"UPDATE reservations SET expires_at = 'infinity', max_expires_at = 'infinity' WHERE id = {holding}",
		holdRow("{free}", "'x'").with("server", "'{}'").into("reservations"),
	}},
	{"bindings_values_are_readable", check, false, []string{
		directRow("{free}", "'x'").with("server", "'{}'").into("bindings"),
		directRow("{free}", "'x'").with("since", "'infinity'").into("bindings"),
	}},
	{"decision_lists_hash_is_of_body", check, false, []string{
		"INSERT INTO decision_lists (organization_id, id, hash, body) VALUES ('acme', gen_random_uuid(), sha256('a'), 'b')",
	}},
	{"servers_state_known", check, false, changes("servers", "{free}", "state = 'held'", "state = 'bound'", "state = 'Ready'", "state = ''")},
	{"servers_raid_known", check, false, changes("servers", "{free}", "raid = 'raid5'")},
	{"servers_site_named", check, false, changes("servers", "{free}", "site = ''")},
	{"servers_unknown_is_null", check, false, changes("servers", "{free}",
		"name = ''", "serial = ''", "rack = ''", "position = ''", "manufacturer = ''", "model = ''", "cpu_vendor = ''", "cpu_model = ''", "memory_type = ''")},
	{"servers_counts_positive", check, false, changes("servers", "{free}", "cpu_sockets = 0", "cpu_cores = -1", "cpu_threads = 0", "memory_mib = 0", "uplink_mbps = 0")},
	{"servers_lists_are_lists", check, false, changes("servers", "{free}", "drives = '\"\"'", "gpus = '1'")},
	{"servers_maps_are_maps", check, false, changes("servers", "{free}", "cpu_benchmarks = '[]'", "attributes = '1'")},
	{"servers_price_complete", check, false, changes("servers", "{free}", "price_amount = 1", "price_currency = 'EUR'", "price_amount = -1, price_currency = 'EUR'")},

	{"reservations_state_known", check, false, changes("reservations", "{holding}", "state = 'released', ended_at = now(), ended_by_kind = 'person'")},
	{"reservations_final_is_complete", check, false, changes("reservations", "{holding}",
		"state = 'expired'", "state = 'cancelled', ended_at = now()", "state = 'cancelled', ended_by_kind = 'person'", "ended_at = now(), ended_by_kind = 'person'")},
	{"reservations_sweep_only_expires", check, false, changes("reservations", "{holding}", "state = 'cancelled', ended_at = now(), ended_by_kind = 'sweep'")},
	{"reservations_unit_positive", check, false, []string{holdRow("{free}", "'x'").with("unit", "0").into("reservations")}},
	{"reservations_deadline_in_bounds", check, false, changes("reservations", "{holding}", "expires_at = max_expires_at + interval '1 microsecond'")},

	{"bindings_decided_in_time", check, false, []string{
		bindingRow("{holding}", "{held}", "'held'", "'x'").with("decided_at", "now()", "hold_expires_at", "now()").into("bindings"),
		bindingRow("{holding}", "{held}", "'held'", "'x'").with("decided_at", "now()", "hold_expires_at", "now() - interval '1 hour'").into("bindings"),
	}},
	{"bindings_conversion_complete", check, false, []string{
		bindingRow("{holding}", "{held}", "NULL", "'x'").into("bindings"),
		bindingRow("NULL", "{free}", "'x'", "'x'").into("bindings"),
		bindingRow("{holding}", "{held}", "'held'", "'x'").with("decided_at", "NULL").into("bindings"),
		bindingRow("{holding}", "{held}", "'held'", "'x'").with("hold_expires_at", "NULL").into("bindings"),
		bindingRow("{holding}", "{held}", "'held'", "'x'").with("unit", "NULL").into("bindings"),
		bindingRow("{holding}", "{held}", "'held'", "'x'").with("order_line", "NULL").into("bindings"),
	}},
	{"bindings_end_complete", check, false, changes("bindings", "{binding}", "ended_at = now()", "ended_by_kind = 'person'")},
}

var uniqueRules = []rule{
	{"reservations_one_held_per_server", unique, false, []string{hold("{held}", "'x'")}},
	{"reservations_one_per_key", unique, false, []string{holdRow("{free}", "'x'").with("idempotency_key", "'the key'").into("reservations")}},
	{"reservations_pkey", unique, false, []string{holdRow("{free}", "'x'").with("id", "{expired}").into("reservations")}},
	{"occupancy_one_per_server", unique, false, []string{hold("{sold}", "'x'"), hold("{given}", "'x'"), directRow("{held}", "'x'").into("bindings")}},
	{"occupancy_one_per_order_line", unique, false, []string{hold("{free}", "'held'"), hold("{free}", "'sold'")}},
	{"bindings_one_active_per_server", unique, false, []string{directRow("{sold}", "'x'").into("bindings"), directRow("{given}", "'x'").into("bindings")}},
	{"bindings_one_active_per_service", unique, false, []string{
		directRow("{free}", "'sold'").into("bindings"), bindingRow("{holding}", "{held}", "'held'", "'given'").into("bindings"),
	}},
	{"bindings_one_per_reservation", unique, false, []string{
		bindingRow("{past}", "{back}", "'back'", "'x'").into("bindings"),
		endBinding("{binding}") + then + bindingRow("{converted}", "{sold}", "'sold'", "'x'").into("bindings"),
	}},
	{"bindings_pkey", unique, false, []string{directRow("{free}", "'x'").with("id", "{ended}").into("bindings")}},
	{"servers_pkey", unique, false, []string{"INSERT INTO servers (organization_id, id, source, external_id, site, state) VALUES ('acme', {free}, 'x', 'x', 'FSN1', 'ready')"}},
	{"servers_one_per_source", unique, false, []string{
		"INSERT INTO servers (organization_id, id, source, external_id, site, state) SELECT 'acme', gen_random_uuid(), source, external_id, 'FSN1', 'ready' FROM servers WHERE id = {free}",
	}},
}

// unreached are rules behind another one that speaks first, each with the one.
var unreached = map[string]string{
	"occupancy_one_owner":     "occupancy_by_triggers_only",
	"events_pkey":             "ids are fresh, and a copied one is no matter of the arbiter",
	"decisions_pkey":          "likewise",
	"decision_lists_pkey":     "likewise",
	"reservation_states_pkey": "the comparison of states sees whatever is written there",
}

// Every named rule of the sale path is refused to raw SQL under its own name, whatever is tried, and changes nothing.
//
// Requirements: R05, R07, R14, R39
func TestEveryNamedRuleIsRefused(t *testing.T) {
	t.Parallel()
	w := stocked(t)
	w.exec(`INSERT INTO decisions (organization_id, id, order_id, order_line, unit, outcome, by_kind, body) VALUES ('acme', uuid_v7(), 'x', '1', 1, 'contended', 'key', '{}')`)
	w.exec(`INSERT INTO decision_lists (organization_id, id, hash, body) VALUES ('acme', uuid_v7(), sha256(''), '')`)
	w.exec(`INSERT INTO events (organization_id, id, type, actor_kind) VALUES ('acme', uuid_v7(), 'test', 'key')`)
	s := w.session()
	before := contents(s)
	for _, r := range slices.Concat(triggerRules, checkRules, uniqueRules) {
		for _, attempt := range r.tries {
			refused := s.refusedLast(t, r, attempt)
			require.Equal(t, r.code+" "+r.name, refused.Code+" "+refused.ConstraintName, "%s: %s", attempt, refused.Message)
			require.NotEmpty(t, refused.Message)
			require.Equal(t, before, contents(s), attempt)
		}
	}
	w.soundRows()
}

// refusedLast runs the steps of one try in a transaction; all but the last must pass, or all if the rule is deferred.
func (s *session) refusedLast(t *testing.T, r rule, attempt string) *pgconn.PgError {
	t.Helper()
	defer s.rollback()
	s.do(`BEGIN`)
	steps := strings.Split(attempt, then)
	var err error
	for i, sql := range steps {
		err = s.try(fill(sql))
		if i < len(steps)-1 || r.deferred {
			require.NoError(t, err, "%s: a step before the one to be refused: %s", r.name, sql)
		}
	}
	if err == nil {
		err = s.try(`COMMIT`)
		require.True(t, r.deferred || err == nil, "%s: only at COMMIT: %s", r.name, attempt)
	}
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused, "%s lets this pass: %s", r.name, attempt)
	return refused
}

// contents is a fingerprint of everything in the tables of the sale path.
func contents(s *session) []string {
	return column[string](s, `SELECT t || md5(coalesce(string_agg(r, ' ' ORDER BY r), '')) FROM (
			SELECT 'servers' AS t, x::text AS r FROM public.servers x UNION ALL SELECT 'reservations', x::text FROM public.reservations x
			UNION ALL SELECT 'bindings', x::text FROM public.bindings x UNION ALL SELECT 'occupancy', x::text FROM public.occupancy x
			UNION ALL SELECT 'events', x::text FROM public.events x UNION ALL SELECT 'decisions', x::text FROM public.decisions x) all_rows
		GROUP BY t ORDER BY t`)
}

// elsewhere are tables whose rules are tested with the package that owns them.
var elsewhere = []string{
	"organizations", "api_keys", "flags", "flag_overrides", "audit", "schema_compatibility", "locks", "fence_epoch", "leases", "lease_resources",
}

// A rule that nobody tried is found: what the catalog has and what is tried above are the same.
//
// Requirements: R05, R07
func TestEveryRuleOfTheSalePathIsTried(t *testing.T) {
	t.Parallel()
	s := newWorld(t).session()
	const own = ` c.relnamespace = 'public'::regnamespace AND NOT c.relispartition AND c.relname !~ '^(river|goose)_' AND c.relname <> ALL ($1)`
	require.ElementsMatch(t,
		column[string](s, `SELECT g.tgname::text FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid WHERE NOT g.tgisinternal AND`+own, elsewhere),
		append(names(triggerRules), quiet...), "triggers")
	require.ElementsMatch(t,
		without(column[string](s, `SELECT k.conname::text FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.contype IN ('c', 'f', 'x') AND`+own, elsewhere)),
		names(checkRules), "constraints that check")
	require.ElementsMatch(t,
		without(column[string](s, `SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE i.indisunique AND`+own, elsewhere)),
		names(uniqueRules), "unique indexes")
}

func names(rules []rule) (list []string) {
	for _, r := range rules {
		list = append(list, r.name)
	}
	return list
}

func without(list []string) []string {
	return slices.DeleteFunc(list, func(name string) bool { return unreached[name] != "" })
}

// Rows of the sale path refer to servers by id alone: with a foreign key, a lost race would be a deadlock and a free
// server would be skipped.
//
// Requirements: R15. Faults: F-R12.
func TestNoForeignKeyOnTheSalePath(t *testing.T) {
	t.Parallel()
	s := newWorld(t).session()
	require.Empty(t, column[string](s, `SELECT conname::text FROM pg_constraint WHERE contype = 'f'
		AND (conrelid IN ('servers'::regclass, 'reservations'::regclass, 'bindings'::regclass, 'occupancy'::regclass)
			OR confrelid IN ('servers'::regclass, 'reservations'::regclass, 'bindings'::regclass, 'occupancy'::regclass))`))
}

// Ending a hold or a binding gives the server back also in a session that has tables of the same names.
//
// Requirements: R07
func TestOwnTablesDoNotKeepAServer(t *testing.T) {
	t.Parallel()
	w := stocked(t)
	s := w.session().do(`CREATE TEMP TABLE occupancy (LIKE public.occupancy)`)
	s.do(`INSERT INTO pg_temp.occupancy TABLE public.occupancy`)
	s.do(fill(end("cancelled", "{holding}"))).do(fill(endBinding("{binding}"))).do(fill(endBinding("{gift}")))
	w.soundRows()
	require.Zero(t, one[int](w, `SELECT count(*) FROM occupancy`))
	require.Equal(t, 3, value[int](s, `SELECT count(*) FROM pg_temp.occupancy`), "nobody looked at the session's own")
}

// Whatever a person with psql does to a server, a reservation or a binding is noted under the transaction that did it, and
// gives the row its next version: the service's memory of the inventory is brought up to date by that. Nobody's own words
// stand in for it, as in rows that are copied from a table kept beside.
//
// Requirements: R07, R36
func TestEveryChangeIsNoted(t *testing.T) {
	t.Parallel()
	w := stocked(t)
	s := w.session()
	for table, id := range map[string]string{"servers": "{free}", "reservations": "{holding}", "bindings": "{binding}"} {
		const noted = ` RETURNING changed_by = pg_current_xact_id(), version`
		for touch, version := range map[string]int{"version = 1": 2, "changed_by = '1'": 2, "changed_by = '1', version = 77": 77} {
			s.do(`BEGIN`)
			rows, err := s.conn.Query(w.ctx, fill("UPDATE "+table+" SET "+touch+" WHERE id = "+id+noted))
			require.NoError(t, err)
			got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[struct {
				Noted   bool
				Version int
			}])
			require.NoError(t, err)
			require.True(t, got.Noted, "%s SET %s", table, touch)
			require.Equal(t, version, got.Version, "%s SET %s", table, touch)
			s.rollback()
		}
	}
	for table, sql := range map[string]string{
		"servers":      "INSERT INTO servers (organization_id, id, source, external_id, site, state, changed_by) VALUES ('acme', {new}, 'test', 'new', 'NEW1', 'ready', '1')",
		"reservations": holdRow("{free}", "'new'").with("changed_by", "'1'").into("reservations"),
		"bindings":     directRow("{spare}", "'new'").with("changed_by", "'1'").into("bindings"),
	} {
		s.do(`BEGIN`).do(fill(sql))
		require.Equal(t, 1, value[int](s, `SELECT count(*) FROM `+table+` WHERE changed_by = pg_current_xact_id()`), table)
		s.rollback()
	}

	wanted := request("new")
	wanted.Requirements.Sites = []string{"NEW1"}
	require.Equal(t, allocation.OutcomeNoCapacity, w.reserve(w.ctx, wanted).Code)
	s.do(fill("INSERT INTO servers (organization_id, id, source, external_id, site, state, changed_by) VALUES ('acme', {new}, 'test', 'new', 'NEW1', 'ready', '1')"))
	require.Equal(t, allocation.OutcomeReserved, w.reserve(w.ctx, wanted).Code, "a copied server is for sale at once")
}

// What is allowed to a person with psql works: hold, renew, hand over, cancel, convert in either order of statements,
// end a binding, sell directly. Occupancy follows each time.
//
// Requirements: R07, R47
func TestRawSQLThatKeepsTheRulesWorks(t *testing.T) {
	t.Parallel()
	w := stocked(t)
	s := w.session()
	for _, allowed := range []struct {
		name  string
		steps []string
	}{
		{"hold a server that came back", []string{hold("{back}", "'again'")}},
		{"hold for an order line that came back", []string{hold("{spare}", "'back'")}},
		{"renew", []string{"UPDATE reservations SET expires_at = max_expires_at WHERE id = {holding}"}},
		{"hand over", []string{"UPDATE reservations SET generation = 6, fence = 2000 WHERE id = {holding}"}},
		{"erase a customer", []string{"UPDATE reservations SET customer_ref = NULL, end_text = NULL WHERE id = {converted}"}},
		{"sell a lapsed one directly", []string{directRow("{lapsed}", "'direct'").into("bindings")}},
		{"convert, binding first", []string{bindingRow("{holding}", "{held}", "'held'", "'held'").into("bindings"), end("converted", "{holding}")}},
		{"end a gift", []string{endBinding("{gift}")}},
		{"hold what was given", []string{holdRow("{given}", "'late'").with("id", "{late}").into("reservations")}},
		{"convert, state first", []string{end("converted", "{late}"), bindingRow("{late}", "{given}", "'late'", "'late'").into("bindings")}},
	} {
		require.NoError(t, s.transaction("READ COMMITTED", allowed.steps...), allowed.name)
		w.soundRows()
	}
}

// An expired hold is not converted by raw SQL either, whatever deadline its binding invents.
//
// Requirements: R51.
func TestRawConversionOfAnExpiredHold(t *testing.T) {
	t.Parallel()
	w := stocked(t)
	s := w.session()
	s.do(fill("UPDATE reservations SET expires_at = clock_timestamp() - interval '1 second' WHERE id = {holding}"))
	s.do(`BEGIN`)
	_, err := s.conn.Exec(w.ctx, fill(bindingRow("{holding}", "{held}", "'held'", "'x'").into("bindings")))
	requireRefused(t, err, check, "bindings_decided_in_time")
	s.rollback()
	w.soundRows()
}
