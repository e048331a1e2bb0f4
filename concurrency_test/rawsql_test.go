//go:build gates

package concurrency_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// row is one row to insert: an SQL expression for each column.
type row map[string]string

// holdRow is a reservation as a person would type it. Server and order are SQL.
func holdRow(server, order string) row {
	return row{
		"organization_id": "'acme'", "id": "gen_random_uuid()", "server_id": server, "order_id": order, "order_line": "'1'", "unit": "1",
		"created_by_kind": "'person'", "expires_at": "clock_timestamp() + interval '15 minutes'",
		"max_expires_at": "clock_timestamp() + interval '1 hour'", "idempotency_key": "gen_random_uuid()::text",
		"fingerprint": `'\x00'`, "token_key": "'test'", "requirements": "'{}'", "reason": "'{}'", "server": `'{"v": 1, "site": "FSN1"}'`, "decision_id": "gen_random_uuid()",
	}
}

// directRow is a binding of a server that was sold before Allocator came.
func directRow(server, service string) row {
	return row{
		"organization_id": "'acme'", "id": "gen_random_uuid()", "server_id": server, "service_id": service, "created_by_kind": "'person'", "server": `'{"v": 1, "site": "FSN1"}'`,
	}
}

// bindingRow is the binding of a reservation that holds the server for an order.
func bindingRow(reservation, server, order, service string) row {
	return directRow(server, service).with(
		"reservation_id", reservation, "order_id", order, "order_line", "'1'", "unit", "1",
		"decided_at", "clock_timestamp()", "hold_expires_at", "clock_timestamp() + interval '1 minute'")
}

// with is a copy with other expressions, given as column, expression, column, expression and so on.
func (r row) with(changes ...string) row {
	r = maps.Clone(r)
	for change := range slices.Chunk(changes, 2) {
		r[change[0]] = change[1]
	}
	return r
}

func (r row) columns() string { return strings.Join(slices.Sorted(maps.Keys(r)), ", ") }

func (r row) values() string {
	var list []string
	for _, column := range slices.Sorted(maps.Keys(r)) {
		list = append(list, r[column])
	}
	return strings.Join(list, ", ")
}

// into is the statement that inserts the row.
func (r row) into(table string) string {
	return "INSERT INTO " + table + " (" + r.columns() + ") VALUES (" + r.values() + ")"
}

// from is the statement that inserts the row as a reservation, once for each row of a source.
func (r row) from(source string) string {
	return "INSERT INTO reservations (" + r.columns() + ") SELECT " + r.values() + " FROM " + source
}

// bindFrom is from for bindings.
func (r row) bindFrom(source string) string {
	return "INSERT INTO bindings (" + r.columns() + ") SELECT " + r.values() + " FROM " + source
}

func hold(server, order string) string { return holdRow(server, order).into("reservations") }

// end is the UPDATE that brings a reservation into a final state.
func end(state, reservation string) string {
	return "UPDATE reservations SET state = '" + state + "', ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE id = " + reservation
}

// endBinding ends a binding.
func endBinding(binding string) string {
	return "UPDATE bindings SET ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE id = " + binding
}

// named matches the names that stand for ids in the SQL of these tests, such as {free}.
var named = regexp.MustCompile(`\{([a-z]+)\}`)

// fill puts the id that belongs to a name in place of every {name}: the same one in the whole test.
func fill(sql string) string {
	return named.ReplaceAllStringFunc(sql, func(name string) string {
		return "'" + uuid.NewSHA1(uuid.Nil, []byte(name)).String() + "'"
	})
}

// stock are one server of each kind of owner, by name: nobody has {free} and {spare}; {held} is held by {holding} for
// order 'held'; {sold} is bound by {binding} of {converted} for order 'sold'; {given} is bound by {gift} without a
// reservation; {back} was bound by {ended} of {past}, and {lapsed} was held by {expired}.
var stock = []string{
	`INSERT INTO servers (organization_id, id, source, external_id, site, state)
		SELECT 'acme', id, 'test', id::text, 'FSN1', 'ready' FROM unnest(ARRAY[{free}, {spare}, {held}, {sold}, {given}, {back}, {lapsed}]::uuid[]) AS id`,
	`INSERT INTO servers (organization_id, id, source, external_id, site, state) VALUES ('other', {theirs}, 'test', '1', 'FSN1', 'ready')`,
	holdRow("{held}", "'held'").with("id", "{holding}", "idempotency_key", "'the key'", "fence", "1000", "generation", "5").into("reservations"),
	holdRow("{lapsed}", "'lapsed'").with("id", "{expired}").into("reservations"),
	end("expired", "{expired}"),
	holdRow("{sold}", "'sold'").with("id", "{converted}").into("reservations"),
	bindingRow("{converted}", "{sold}", "'sold'", "'sold'").with("id", "{binding}").into("bindings"),
	end("converted", "{converted}"),
	holdRow("{back}", "'back'").with("id", "{past}").into("reservations"),
	bindingRow("{past}", "{back}", "'back'", "'back'").with("id", "{ended}").into("bindings"),
	end("converted", "{past}"),
	endBinding("{ended}"),
	directRow("{given}", "'given'").with("id", "{gift}").into("bindings"),
}

// stocked is a world with the stock in it, committed.
func stocked(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	s := w.session()
	s.do(`BEGIN`)
	for _, sql := range stock {
		s.do(fill(sql))
	}
	s.do(`COMMIT`)
	return w
}

// soundRows checks what holds of rows that raw SQL wrote, which leaves neither events nor decisions, reads the clock before
// it waits for a lock, and ends what it likes when it likes.
func (w *world) soundRows() {
	w.t.Helper()
	w.sound("every reservation's decision", "I12 one event per transition", "I3 a decision has its reservation", "I3 a binding has its events",
		"I2 no overlap over all history", "I2 no instant between hold and binding",
		"I7 nothing ends on the wrong side of its deadline", "I7 staff who cancel say why")
}

// bare is a world whose database has the given schema and nothing else: the place of a design that was rejected.
func bare(t *testing.T, schema string) *world {
	t.Helper()
	url := postgrestest.EmptyURL(t)
	w := &world{t: t, ctx: t.Context(), url: url, pool: postgrestest.Pool(t, url)}
	w.exec(schema)
	return w
}

// try runs SQL that may be refused.
func (s *session) try(sql string, args ...any) error {
	_, err := s.conn.Exec(s.w.ctx, sql, args...)
	return err
}

// affected runs SQL that must succeed and tells how many rows it touched.
func (s *session) affected(sql string, args ...any) int {
	s.w.t.Helper()
	tag, err := s.conn.Exec(s.w.ctx, sql, args...)
	require.NoError(s.w.t, err)
	return int(tag.RowsAffected())
}

// column reads one column of all rows.
func column[T any](s *session, sql string, args ...any) []T {
	s.w.t.Helper()
	rows, err := s.conn.Query(s.w.ctx, sql, args...)
	require.NoError(s.w.t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(s.w.t, err)
	return list
}

// value reads one value.
func value[T any](s *session, sql string, args ...any) T {
	s.w.t.Helper()
	list := column[T](s, sql, args...)
	require.Len(s.w.t, list, 1)
	return list[0]
}

// start sends SQL that will have to wait, and returns when it does; finish returns what became of it.
func (s *session) start(sql string, args ...any) (finish func() error) {
	s.w.t.Helper()
	finish, waits := s.send(sql, args...)
	require.True(s.w.t, waits, "it did not wait")
	return finish
}

// send sends SQL and returns when it is answered or waits for somebody's lock.
func (s *session) send(sql string, args ...any) (finish func() error, waits bool) {
	s.w.t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.try(sql, args...) }()
	require.Eventually(s.w.t, func() bool {
		waits = len(blockers(s.w, s.pid())) > 0
		return waits || len(done) > 0
	}, patience, time.Millisecond, "it neither waits nor is answered")
	return func() error { return receive(s.w, done) }, waits
}

// blockers are the processes for whose locks a process waits.
func blockers(w *world, pid uint32) []int32 {
	w.t.Helper()
	return one[[]int32](w, `SELECT pg_blocking_pids($1)`, int32(pid))
}

// refusal is under which SQLSTATE and constraint something was refused; empty for no error.
func refusal(err error) (code, constraint string) {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return "", ""
	case errors.As(err, &pg):
		return pg.Code, pg.ConstraintName
	default:
		return "no error of PostgreSQL", err.Error()
	}
}

// requireRefused asserts that something was refused under this code and constraint.
func requireRefused(t require.TestingT, err error, code, constraint string) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	gotCode, gotConstraint := refusal(err)
	require.Equal(t, code+" "+constraint, gotCode+" "+gotConstraint, "%v", err)
}

// rollback ends the session's transaction, whatever it came to.
func (s *session) rollback() {
	_, _ = s.conn.Exec(context.WithoutCancel(s.w.ctx), `ROLLBACK`)
}
