package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// diagnosis runs `doctor --json` and returns the checks that failed, by name, with their findings.
func diagnosis(t *testing.T, url string) (code int, failed map[string][]string) {
	t.Helper()
	got := inProcess(t, map[string]string{"ALLOCATOR_DATABASE_URL": url}, "doctor", "--json")
	var answer struct {
		OK     bool          `json:"ok"`
		Checks []checkResult `json:"checks"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer), got.stderr)
	require.Equal(t, got.code == exitDone, answer.OK)
	failed = map[string][]string{}
	for _, c := range answer.Checks {
		if !c.OK {
			require.NotEmpty(t, c.Remedy, c.Name)
			require.Positive(t, c.Found, c.Name)
			failed[c.Name] = c.Shown
		}
	}
	return got.code, failed
}

// asSuperuser runs statements with the triggers off, as only somebody with all rights can.
func asSuperuser(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for _, sql := range append([]string{`SET LOCAL session_replication_role = replica`}, statements...) {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				return err
			}
		}
		return nil
	}))
}

const (
	serverRow = `INSERT INTO servers (organization_id, id, source, external_id, site, state)
		VALUES ('acme', '00000000-0000-7000-8000-00000000000a', 'test', 'a', 'FSN1', 'ready')`
	heldRow = `INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, state, created_by_kind, expires_at,
			max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id, ended_at, ended_by_kind)
		VALUES ('acme', uuid_v7(), '00000000-0000-7000-8000-00000000000a', 'A-1', '1', 'STATE', 'key', clock_timestamp() + interval 'EXPIRES',
			clock_timestamp() + interval '1 hour', gen_random_uuid()::text, '', 'k1', '{}', '{}', '{"v": 1}', uuid_v7(), ENDED)`
	boundRow = `INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
		VALUES ('acme', uuid_v7(), '00000000-0000-7000-8000-00000000000a', 's-1', 'key', '{"v": 1}')`
)

func row(state, expires, ended string) string {
	return strings.NewReplacer("STATE", state, "EXPIRES", expires, "ENDED", ended).Replace(heldRow)
}

// What stands still is found as well: holds that nobody sweeps, and transactions that nobody ends.
//
// Faults: F-J5.
func TestDoctorFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	held := row("held", "10 minutes", "NULL, NULL")
	for sentence, c := range map[string]struct {
		broken []string
		check  string // the beginning of its name
		says   string
	}{
		"held and bound at once":                  {[]string{serverRow, held, boundRow}, "one owner", "server 00000000-0000-7000-8000-00000000000a"},
		"a hold that occupies nothing":            {[]string{serverRow, held}, "occupancy says", "server 00000000"},
		"a hold without its decision":             {[]string{serverRow, held}, "every reservation has the decision", "reservation "},
		"a hold without its event":                {[]string{serverRow, held}, "every transition has exactly one event", "reservation "},
		"a hold of a server that is nobody's":     {[]string{held}, "organizations are apart", "reservation "},
		"converted without a binding":             {[]string{serverRow, row("converted", "10 minutes", "clock_timestamp(), 'key'")}, "converted means bound", "reservation "},
		"expired before its time":                 {[]string{serverRow, row("expired", "10 minutes", "clock_timestamp(), 'sweep'")}, "nothing expired before", "reservation "},
		"cancelled by a person without a word":    {[]string{serverRow, row("cancelled", "10 minutes", "clock_timestamp(), 'person'")}, "staff who cancelled", "reservation "},
		"due for ten minutes":                     {[]string{serverRow, row("held", "-10 minutes", "NULL, NULL")}, "nothing is due and unswept", "due since"},
		"a fence that does not grow":              {[]string{serverRow, row("cancelled", "1 minute", "clock_timestamp(), 'key'"), `ALTER SEQUENCE reservation_fence RESTART`, row("cancelled", "1 minute", "clock_timestamp(), 'key'")}, "the fence", "reservation "},
		"occupied, and there is no such server":   {[]string{`INSERT INTO occupancy (organization_id, server_id, binding_id) VALUES ('acme', uuid_v7(), uuid_v7())`}, "free, held, bound and out", "occupied server"},
		"a trigger that is off":                   {[]string{`ALTER TABLE reservations DISABLE TRIGGER reservations_occupy`}, "every trigger", "trigger reservations_occupy is off on reservations"},
		"a trigger that is gone":                  {[]string{`DROP TRIGGER occupancy_is_kept ON occupancy`}, "every trigger", "trigger occupancy_is_kept is missing"},
		"an arbiter that is gone":                 {[]string{`DROP INDEX reservations_one_held_per_server`}, "every unique index", "index reservations_one_held_per_server is missing"},
		"an index that was never finished":        {[]string{`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'bindings_of_order'::regclass`}, "every unique index", "index bindings_of_order is invalid"},
		"another table of states":                 {[]string{`UPDATE reservation_states SET holds_server = true WHERE state = 'expired'`}, "the table of states", "state expired"},
		"a month that has no partition":           {[]string{`DO $$ BEGIN EXECUTE 'DROP TABLE events' || to_char(clock_timestamp() AT TIME ZONE 'UTC', '_YYYY_MM'); END $$`}, "the months ahead", "partition events_"},
		"an event of no month":                    {[]string{`INSERT INTO events (organization_id, id, type, actor_kind) VALUES ('acme', '00000000-0000-7000-8000-000000000001', 'x', 'key')`}, "no row fell", "events_default"},
		"a sweep that stands still":               {[]string{`INSERT INTO river_job (state, kind, args, max_attempts, attempted_at, attempt) VALUES ('running', 'sweep_reservations', '{}', 1, clock_timestamp() - interval '1 hour', 1)`}, "the sweep is not stuck", "is running since"},
		"a refusal while something fitted":        {[]string{decision("no_capacity", "nothing_matches", `{"eligible": 3}`)}, "no refusal said", "decision "},
		"contended while nothing fitted":          {[]string{decision("contended", "servers_taken", `{"eligible": 0, "skipped": 0, "stale": 0, "attempts": 0, "walks": 1}`)}, "no refusal said", "decision "},
		"a walk that went too far":                {[]string{decision("reserved", "", `{"eligible": 40, "skipped": 20, "stale": 3, "attempts": 3}`)}, "no walk passed", "decision "},
		"a decision that the deadline overtook":   {[]string{`ALTER TABLE bindings DROP CONSTRAINT bindings_decided_in_time, DROP CONSTRAINT bindings_conversion_complete`, serverRow, boundRow, `UPDATE bindings SET decided_at = clock_timestamp(), hold_expires_at = clock_timestamp() - interval '1 second'`}, "every conversion was decided", "binding "},
		"two reservations of one key":             {[]string{`DROP INDEX reservations_one_per_key`, serverRow, row("cancelled", "1 minute", "clock_timestamp(), 'key'"), row("cancelled", "1 minute", "clock_timestamp(), 'key'"), `UPDATE reservations SET idempotency_key = 'k'`}, "one key made one", "key k"},
		"two servers of one order line":           {[]string{`ALTER TABLE occupancy DROP CONSTRAINT occupancy_one_per_order_line`, occupied, occupied}, "one order line", "order A-1, line 1, unit 1"},
		"two servers of one service":              {[]string{`DROP INDEX bindings_one_active_per_service`, boundRow, strings.Replace(boundRow, "00a'", "00b'", 1)}, "one service has", "service s-1"},
		"a schema that is older than the program": {[]string{`DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`}, "the service can serve", "run `allocator migrate` first"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			url := postgrestest.URL(t)
			asSuperuser(t, poolOf(t, url), c.broken...)
			code, failed := diagnosis(t, url)
			require.Equal(t, exitConflict, code)
			for name, shown := range failed {
				if strings.HasPrefix(name, c.check) {
					require.Contains(t, strings.Join(shown, "\n"), c.says)
					return
				}
			}
			require.Fail(t, "not found", "%v", failed)
		})
	}
}

const occupied = `INSERT INTO occupancy (organization_id, server_id, order_id, order_line, unit, reservation_id) VALUES ('acme', uuid_v7(), 'A-1', '1', 1, uuid_v7())`

func decision(outcome, cause, body string) string {
	return `INSERT INTO decisions (organization_id, id, order_id, order_line, unit, outcome, cause, by_kind, body)
		VALUES ('acme', uuid_v7(), 'A-1', '1', 1, '` + outcome + `', nullif('` + cause + `', ''), 'key', '` + body + `')`
}

// Who was refused because others took each server in turn may have seen none that fitted in the last list: that is no lie.
func TestDoctorBelievesWhoLostEveryRace(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	asSuperuser(t, poolOf(t, url),
		decision("contended", "servers_taken", `{"eligible": 0, "skipped": 0, "stale": 1, "attempts": 0, "walks": 1}`),
		decision("contended", "servers_taken", `{"eligible": 0, "skipped": 0, "stale": 0, "attempts": 0, "walks": 3}`))
	_, failed := diagnosis(t, url)
	require.NotContains(t, failed, "no refusal said there was nothing while something fitted")
}

func TestDoctorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	pool := poolOf(t, url)
	_, failed := diagnosis(t, url)
	for name := range failed { // servers of tests may forget what they wrote; up_test has one that may not
		require.Contains(t, name, "survives a crash")
	}

	var spoilt []string
	for range 7 {
		spoilt = append(spoilt, decision("no_capacity", "nothing_matches", `{"eligible": 3}`))
	}
	asSuperuser(t, pool, spoilt...)
	got := inProcess(t, map[string]string{"ALLOCATOR_DATABASE_URL": url}, "doctor")
	require.Equal(t, exitConflict, got.code)
	require.Regexp(t, `FAIL  I5   no refusal said there was nothing while something fitted\n( +decision \S+\n){5} +and 2 more\n +What to do: \S`, got.stdout)
	require.Regexp(t, `^allocator: (1 check|2 checks) found something\n$`, got.stderr)
	require.Equal(t, len(saleChecks)+len(guardChecks), strings.Count(got.stdout, "ok ")+len(failed))
}

func TestDoctorKnowsEveryRuleOfTheSchema(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	list := func(sql string) []string {
		rows, err := pool.Query(t.Context(), sql)
		require.NoError(t, err)
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return names
	}
	require.ElementsMatch(t, triggers, list(`SELECT DISTINCT tgname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
		WHERE NOT tgisinternal AND relnamespace = 'public'::regnamespace AND relname NOT LIKE 'river_%'`))
	require.Subset(t, list(`SELECT indexrelid::regclass::text FROM pg_index WHERE indisunique`), arbiters)
}

func TestDoctorOfADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	got := inProcess(t, map[string]string{"ALLOCATOR_DATABASE_URL": "postgres://me:hunter2@127.0.0.1:1/a"}, "doctor")
	require.Equal(t, exitRetry, got.code)
	require.NotContains(t, got.stderr, "hunter2")
}
