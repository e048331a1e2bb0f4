//go:build gates

package concurrency_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Rows as only somebody with all rights can write them, with the triggers off.
const (
	plantedServer = `INSERT INTO servers (organization_id, id, source, external_id, site, state)
		VALUES ('acme', '00000000-0000-7000-8000-00000000000a', 'test', 'a', 'FSN1', 'ready')`
	plantedHold = `INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, state, created_by_kind, expires_at,
			max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id, ended_at, ended_by_kind)
		VALUES ('acme', uuid_v7(), '00000000-0000-7000-8000-00000000000a', 'A-1', '1', 'STATE', 'key', clock_timestamp() + interval 'EXPIRES',
			clock_timestamp() + interval '1 hour', gen_random_uuid()::text, '', 'k1', '{}', '{}', '{"v": 1}', uuid_v7(), ENDED)`
	plantedBinding = `INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
		VALUES ('acme', uuid_v7(), '00000000-0000-7000-8000-00000000000a', 's-1', 'key', '{"v": 1}')`
	// plantedSale is the binding of the one reservation, with the deadline and the beginning that are put in.
	plantedSale = `INSERT INTO bindings (organization_id, id, server_id, service_id, reservation_id, order_id, order_line, unit,
			decided_at, hold_expires_at, since, created_by_kind, server)
		SELECT 'acme', uuid_v7(), server_id, 's-1', id, 'A-1', '1', 1, clock_timestamp(), clock_timestamp() + interval 'DEADLINE',
			clock_timestamp() + interval 'SINCE', 'key', '{"v": 1}' FROM reservations`
	plantedOccupancy = `INSERT INTO occupancy (organization_id, server_id, order_id, order_line, unit, reservation_id)
		VALUES ('acme', uuid_v7(), 'A-1', '1', 1, uuid_v7())`
)

func planted(state, expires, ended string) string {
	return strings.NewReplacer("STATE", state, "EXPIRES", expires, "ENDED", ended).Replace(plantedHold)
}

func plantedSold(deadline, since string) string {
	return strings.NewReplacer("DEADLINE", deadline, "SINCE", since).Replace(plantedSale)
}

func plantedDecision(outcome, cause, body string) string {
	return `INSERT INTO decisions (organization_id, id, order_id, order_line, unit, outcome, cause, by_kind, body)
		VALUES ('acme', uuid_v7(), 'A-1', '1', 1, '` + outcome + `', nullif('` + cause + `', ''), 'key', '` + body + `')`
}

func plantedEvent(column string) string {
	return `INSERT INTO events (organization_id, id, type, actor_kind, ` + column + `) VALUES ('acme', uuid_v7(), 'x', 'key', uuid_v7())`
}

// An auditor that finds nothing has looked: it finds each violation, planted by hand in a transaction of its own.
//
// Requirements: R01.
func TestAuditorFindsEveryViolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := planted("held", "10 minutes", "NULL, NULL")
	cancelled := planted("cancelled", "10 minutes", "clock_timestamp() + interval '1 minute', 'key'")
	converted := planted("converted", "10 minutes", "clock_timestamp(), 'key'")
	tests := map[string]struct {
		finds  string
		broken []string
	}{
		"held and bound at once":                   {"I1 one owner", []string{plantedServer, held, plantedBinding}},
		"a hold that occupies nothing":             {"occupancy is the truth", []string{plantedServer, held}},
		"two owners at once, both gone":            {"I2 no overlap over all history", []string{plantedServer, cancelled, cancelled}},
		"bound a minute after the hold ended":      {"I2 no instant between hold and binding", []string{plantedServer, converted, plantedSold("10 minutes", "1 minute")}},
		"a decision whose reservation is gone":     {"I3 a decision has its reservation", []string{plantedDecision("reserved", "", `{"eligible": 1}`)}},
		"sold, and nobody was told":                {"I3 a binding has its events", []string{plantedServer, converted, plantedSold("10 minutes", "0")}},
		"ended, and nobody was told":               {"I3 a binding has its events", []string{plantedBinding, `UPDATE bindings SET ended_at = clock_timestamp(), ended_by_kind = 'key'`}},
		"decided after the deadline":               {"I4 decided in time", []string{`ALTER TABLE bindings DROP CONSTRAINT bindings_decided_in_time`, plantedServer, converted, plantedSold("-1 second", "0")}},
		"sold out while something fitted":          {"I5 no refusal while something fitted", []string{plantedDecision("no_capacity", "nothing_matches", `{"eligible": 3}`)}},
		"contended while nothing fitted":           {"I5 no refusal while something fitted", []string{plantedDecision("contended", "servers_taken", `{"eligible": 0, "skipped": 0, "stale": 0, "attempts": 0, "walks": 1}`)}},
		"a walk that went too far":                 {"I5 no walk passes its limits", []string{plantedDecision("contended", "scan_limit", `{"eligible": 40, "skipped": 20, "stale": 3, "attempts": 3}`)}},
		"two reservations of one key":              {"I6 one reservation per key", []string{`DROP INDEX reservations_one_per_key`, cancelled, cancelled, `UPDATE reservations SET idempotency_key = 'k'`}},
		"expired before its time":                  {"I7 nothing ends on the wrong side of its deadline", []string{planted("expired", "10 minutes", "clock_timestamp(), 'sweep'")}},
		"cancelled after the deadline":             {"I7 nothing ends on the wrong side of its deadline", []string{planted("cancelled", "-1 second", "clock_timestamp(), 'key'")}},
		"cancelled by a person without a word":     {"I7 staff who cancel say why", []string{planted("cancelled", "10 minutes", "clock_timestamp(), 'person'")}},
		"a fence that does not grow":               {"I8 the fence grows per server", []string{cancelled, `ALTER SEQUENCE reservation_fence RESTART`, cancelled}},
		"held for ten minutes after the deadline":  {"I9 no hold is long past its deadline", []string{planted("held", "-10 minutes", "NULL, NULL")}},
		"held in the end":                          {"I9 nothing is held", []string{held}},
		"a hold of a server that is nobody's":      {"I10 organizations are apart", []string{held}},
		"a binding of a server that is nobody's":   {"I10 organizations are apart", []string{plantedBinding}},
		"a binding of another's reservation":       {"I10 organizations are apart", []string{plantedServer, converted, plantedSold("10 minutes", "0"), `UPDATE reservations SET organization_id = 'other'`}},
		"an event about nobody's server":           {"I10 organizations are apart", []string{plantedEvent("server_id")}},
		"an event about nobody's reservation":      {"I10 organizations are apart", []string{plantedEvent("reservation_id")}},
		"a hold without its event":                 {"I12 one event per transition", []string{plantedServer, held}},
		"occupied, and there is no such server":    {"I14 free, held, bound and out are all", []string{plantedOccupancy}},
		"held and bound, and so counted twice":     {"I14 free, held, bound and out are all", []string{`ALTER TABLE occupancy DROP CONSTRAINT occupancy_one_owner`, plantedServer, `INSERT INTO occupancy (organization_id, server_id, reservation_id, binding_id) VALUES ('acme', '00000000-0000-7000-8000-00000000000a', uuid_v7(), uuid_v7())`}},
		"two servers of one order line":            {"one order line, one server", []string{`ALTER TABLE occupancy DROP CONSTRAINT occupancy_one_per_order_line`, plantedOccupancy, plantedOccupancy}},
		"a hold without its decision":              {"every reservation's decision", []string{held}},
		"converted, and not bound":                 {"converted means bound", []string{converted}},
		"bound, and still held by its reservation": {"converted means bound", []string{plantedServer, held, plantedSold("10 minutes", "0")}},
	}
	hasCase := map[string]string{ // these, which no single transaction can plant, in the next test
		"I9 nobody stays in a transaction": "", "I9 no lock is kept": "", "I9 nobody is in a transaction": "",
	}
	sql := oneStatement(invariants, stuck, left)
	for _, tt := range tests {
		hasCase[tt.finds] = ""
	}
	for _, set := range []map[string]string{invariants, stuck, left} {
		for name := range set {
			require.Contains(t, hasCase, name, "nobody plants a violation of it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			tt := tests[name]
			found := w.plant(t, sql, tt.broken...)
			require.True(t, slices.ContainsFunc(found, func(row string) bool { return strings.HasPrefix(row, tt.finds+": ") }), "%s: %v", tt.finds, found)
		})
	}
	found, err := w.audit(sql)
	require.NoError(t, err)
	require.Empty(t, found, "nothing was planted")
}

// plant looks at what some statements would leave, and takes it back.
func (w *world) plant(t *testing.T, sql string, statements ...string) (found []string) {
	t.Helper()
	tx, err := w.pool.Begin(w.ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.WithoutCancel(w.ctx))) }()
	for _, statement := range append([]string{`SET LOCAL session_replication_role = replica`}, statements...) {
		_, err := tx.Exec(w.ctx, statement)
		require.NoError(t, err, statement)
	}
	rows, err := tx.Query(w.ctx, sql)
	require.NoError(t, err)
	found, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

// Who is left in a transaction, and the locks in it, are found from another session.
//
// Requirements: R01.
func TestAuditorFindsWhoIsLeftInATransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx, err := w.pool.Begin(w.ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.WithoutCancel(w.ctx))) }()
	_, err = tx.Exec(w.ctx, `SELECT pg_advisory_xact_lock(1)`)
	require.NoError(t, err)
	patient := strings.ReplaceAll(stuck["I9 nobody stays in a transaction"], "2 minutes", "0")
	require.NotEqual(t, patient, stuck["I9 nobody stays in a transaction"])
	for name, sql := range map[string]string{"I9 nobody stays": patient, "I9 no lock": left["I9 no lock is kept"], "I9 nobody is in": left["I9 nobody is in a transaction"]} {
		found, err := w.audit(sql)
		require.NoError(t, err)
		require.NotEmpty(t, found, name)
	}
}
