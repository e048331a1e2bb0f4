package postgres

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// kinds are the constraints that errors.go knows by name, and what each must be in the catalog.
var kinds = map[string]string{
	"reservations_one_held_per_server": "partial unique index",
	"reservations_one_per_key":         "unique index",
	"occupancy_one_per_server":         "primary key",
	"occupancy_one_per_order_line":     "unique constraint",
	"bindings_one_active_per_server":   "partial unique index",
	"bindings_one_active_per_service":  "partial unique index",
	"bindings_one_per_reservation":     "unique index",
	"bindings_decided_in_time":         "check",
}

// failures are the other names under which the schema refuses something. Whoever meets one of them in a reservation has
// found a mistake of the program: it is never "taken".
var failures = []string{
	// Ids are fresh, and only a copied one can be there already.
	"api_keys_id", "api_keys_pkey", "audit_pkey", "bindings_pkey", "decision_lists_pkey", "decisions_pkey", "events_pkey",
	"flag_overrides_pkey", "flags_pkey", "organizations_pkey", "reservations_pkey", "servers_pkey",
	// Under the lock of a reservation that is held, there is no binding of it.
	"bindings_one_per_reservation",
	// Answered by ON CONFLICT where it can happen, and constants elsewhere.
	"servers_one_per_source", "reservation_states_pkey", "schema_compatibility_pkey", "fence_epoch_pkey",
	// Of locks, which answer for themselves.
	"locks_fence_grows", "locks_pkey",
	// Of edit leases: an insertion passes over a row that is there, and every replacement counts up.
	"leases_pkey", "lease_resources_pkey", "leases_version_grows",
	// Never refuse.
	"bindings_note_change", "reservations_note_change", "servers_note_change",
	// Rules for raw SQL, which the product's statements keep by themselves.
	"api_keys_revocation_final", "api_keys_rights_fixed", "audit_is_final", "audit_is_kept", "audit_is_kept_for_its_time",
	"bindings_active_are_kept", "bindings_are_kept", "bindings_of_reservations_are_kept", "bindings_end_once", "bindings_identity_fixed", "bindings_occupy",
	"bindings_reservation_converted", "bindings_start_active", "bindings_vacate",
	"decision_lists_are_final", "decisions_are_final", "events_are_final",
	"decision_lists_are_kept", "decisions_are_kept", "events_are_kept",
	"occupancy_by_triggers_only", "occupancy_is_kept",
	"organizations_are_kept", "organizations_are_kept_all", "organizations_identity_fixed",
	"reservations_are_kept", "reservations_converted_has_binding", "reservations_fence_grows", "reservations_final_is_final",
	"reservations_held_are_kept", "reservations_identity_fixed", "reservations_occupy", "reservations_reason_frozen",
	"reservations_sold_are_kept", "reservations_start_held", "reservations_vacate",
	"servers_are_kept", "servers_are_kept_all", "servers_identity_fixed",
}

// Every name in errors.go is the name of a constraint of its kind, and the table above has them all.
//
// Requirements: R29, R31
func TestConstraintNamesAreThoseOfTheCatalog(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	named := namedConstraints(t)
	require.Len(t, kinds, len(named))
	catalog := catalogKinds(t, pool)
	for _, name := range named {
		require.NotEmpty(t, kinds[name], "%s stands in errors.go and not in this test", name)
		require.Equal(t, kinds[name], catalog[name], name)
	}
}

// namedConstraints reads the constants of errors.go.
func namedConstraints(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "constraint") {
			return true
		}
		name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		names = append(names, name)
		return true
	})
	require.NotEmpty(t, names)
	return names
}

// catalogKinds reads every name under which the schema can refuse a row. River's and goose's tables are theirs, and a
// partition's constraints go by the names of its own.
func catalogKinds(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		SELECT ARRAY[i.indexrelid::regclass::text, CASE
			WHEN i.indisprimary THEN 'primary key' WHEN i.indisexclusion THEN 'exclusion constraint'
			WHEN EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype = 'u') THEN 'unique constraint'
			WHEN i.indpred IS NOT NULL THEN 'partial unique index' ELSE 'unique index' END]
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
		WHERE (i.indisunique OR i.indisexclusion) AND `+ownTable+`
		UNION ALL
		SELECT ARRAY[k.conname, 'check'] FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.contype = 'c' AND `+ownTable+`
		UNION ALL
		SELECT ARRAY[g.tgname, 'trigger'] FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid WHERE NOT g.tgisinternal AND `+ownTable)
	require.NoError(t, err)
	catalog := map[string]string{}
	list, err := pgx.CollectRows(rows, pgx.RowTo[[2]string])
	require.NoError(t, err)
	for _, rule := range list {
		require.Empty(t, catalog[rule[0]], "two rules are called %s", rule[0])
		catalog[rule[0]] = rule[1]
	}
	return catalog
}

const ownTable = `c.relnamespace = current_schema()::regnamespace AND NOT c.relispartition AND c.relname !~ '^(river|goose)_'`

// Whatever the schema can refuse either means something to the product or is listed as a failure: a new unique index or
// trigger has to be placed.
//
// Requirements: R29, R31
func TestEveryRuleOfTheSchemaHasAMeaning(t *testing.T) {
	t.Parallel()
	catalog := catalogKinds(t, postgrestest.New(t))
	for name, kind := range catalog {
		known := clashOfConstraint(name) != clashNone
		if kind == "check" && !known {
			continue // a value that no statement of the product writes
		}
		listed := false
		for _, failure := range failures {
			listed = listed || failure == name
		}
		require.NotEqual(t, known, listed, "%s %s: give it a meaning in errors.go or list it as a failure here", kind, name)
	}
	for _, name := range failures {
		require.NotEmpty(t, catalog[name], "%s is in no catalog", name)
	}
}

// The error that PostgreSQL gives is recognised however deep it is wrapped, by its code and constraint alone.
//
// Requirements: R28, R29
func TestWrappedErrorsAreRecognised(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	created, err := b.service.Create(t.Context(), by, bareServer("m-1"))
	require.NoError(t, err)
	row, _ := parseID(serverIDPrefix, string(created.ID))
	_, err = b.pool.Exec(t.Context(), rawHold, row)
	require.NoError(t, err)
	_, second := b.pool.Exec(t.Context(), strings.Replace(rawHold, "s.id::text, '\\x00'", "'another key', '\\x00'", 1), row)
	require.Error(t, second)

	for name, wrapped := range map[string]error{
		"bare":              second,
		"twice wrapped":     fmt.Errorf("reserve: %w", fmt.Errorf("insert: %w", second)),
		"joined":            errors.Join(errors.New("rolled back too"), second),
		"two verbs":         fmt.Errorf("%w: %w", reservation.ErrUnavailable, second),
		"wrapped in a type": &wrapping{fmt.Errorf("deep: %w", &wrapping{second})},
	} {
		require.Equal(t, clashServer, clashOf(wrapped), name)
		require.ErrorIs(t, translate(wrapped), reservation.ErrServerInUse, name)
		require.ErrorIs(t, translate(wrapped), second, "%s: the cause is kept", name)
	}
	require.Equal(t, clashNone, clashOf(errors.New(second.Error())), "the text of a message decides nothing")
}

type wrapping struct{ error }

func (w *wrapping) Unwrap() error { return w.error }

// One constraint, one meaning; and the same code with another constraint, or the same constraint with another code, is a
// failure and never "taken".
//
// Requirements: R29, R31
func TestClashOf(t *testing.T) {
	t.Parallel()
	violated := func(code, constraint string) error { return &pgconn.PgError{Code: code, ConstraintName: constraint} }
	state := func(code string) error { return violated(code, "") }
	tests := map[string]struct {
		err  error
		want clash
	}{
		"held server":                       {violated("23505", "reservations_one_held_per_server"), clashServer},
		"occupied server":                   {violated("23505", "occupancy_one_per_server"), clashServer},
		"bound server":                      {violated("23505", "bindings_one_active_per_server"), clashServer},
		"key":                               {violated("23505", "reservations_one_per_key"), clashKey},
		"order line":                        {violated("23505", "occupancy_one_per_order_line"), clashLine},
		"service":                           {violated("23505", "bindings_one_active_per_service"), clashService},
		"decided after the deadline":        {violated("23514", "bindings_decided_in_time"), clashDeadline},
		"a reservation bound twice":         {violated("23505", "bindings_one_per_reservation"), clashNone},
		"an id twice":                       {violated("23505", "reservations_pkey"), clashNone},
		"a unique index nobody knows":       {violated("23505", "somebody_elses"), clashNone},
		"a unique violation without a name": {state("23505"), clashNone},
		"a name in other letters":           {violated("23505", "Reservations_One_Held_Per_Server"), clashNone},
		"a rule of the schema":              {violated("23514", "reservations_final_is_final"), clashNone},
		"a foreign key":                     {violated("23503", "reservations_one_held_per_server"), clashNone},
		"an exclusion constraint":           {violated("23P01", "occupancy_one_per_server"), clashNone},
		"not null":                          {violated("23502", "reservations_one_per_key"), clashNone},
		"deadlock":                          {state("40P01"), clashRepeat},
		"serialization failure":             {state("40001"), clashRepeat},
		"lock not available":                {state("55P03"), clashLocked},
		"object in use":                     {state("55006"), clashNone},
		"administrator shutdown":            {state("57P01"), clashUnavailable},
		"crash shutdown":                    {state("57P02"), clashUnavailable},
		"starting up":                       {state("57P03"), clashUnavailable},
		"statement timeout":                 {state("57014"), clashUnavailable},
		"too many connections":              {state("53300"), clashUnavailable},
		"disk full":                         {state("53100"), clashUnavailable},
		"out of memory":                     {state("53200"), clashUnavailable},
		"input/output error":                {state("58030"), clashUnavailable},
		"connection failure":                {state("08006"), clashUnavailable},
		"protocol violation":                {state("08P01"), clashUnavailable},
		"idle in transaction":               {state("25P03"), clashUnavailable},
		"read only":                         {state("25006"), clashUnavailable},
		"a poisoned transaction":            {state("25P02"), clashNone},
		"NUL in a text":                     {state("22021"), clashNone},
		"NUL in JSON":                       {state("22P05"), clashNone},
		"a number out of range":             {state("22003"), clashNone},
		"a table that is not there":         {state("42P01"), clashNone},
		"no right to it":                    {state("42501"), clashNone},
		"no connection":                     {&net.OpError{Op: "dial", Err: errors.New("refused")}, clashUnavailable},
		"the connection broke":              {fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), clashUnavailable},
		"the caller's time is over":         {fmt.Errorf("wait: %w", context.DeadlineExceeded), clashUnavailable},
		"the caller went away":              {context.Canceled, clashNone},
		"no row":                            {pgx.ErrNoRows, clashNone},
		"an error of the domain":            {reservation.ErrExpired, clashNone},
		"no error":                          {nil, clashNone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, clashOf(tt.err))
			if tt.err != nil {
				require.Equal(t, tt.want, clashOf(fmt.Errorf("twice: %w", fmt.Errorf("wrapped: %w", tt.err))))
			}
		})
	}
}

// Outside a candidate's savepoint each clash has one word of the domain; what means nothing passes unchanged.
//
// Requirements: R29, R31
func TestTranslate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want error
	}{
		"server":      {&pgconn.PgError{Code: "23505", ConstraintName: "occupancy_one_per_server"}, reservation.ErrServerInUse},
		"service":     {&pgconn.PgError{Code: "23505", ConstraintName: "bindings_one_active_per_service"}, reservation.ErrServiceAlreadyBound},
		"deadline":    {&pgconn.PgError{Code: "23514", ConstraintName: "bindings_decided_in_time"}, reservation.ErrExpired},
		"lock":        {&pgconn.PgError{Code: "55P03"}, reservation.ErrUnavailable},
		"deadlock":    {&pgconn.PgError{Code: "40P01"}, reservation.ErrUnavailable},
		"full":        {&pgconn.PgError{Code: "53300"}, reservation.ErrUnavailable},
		"broken":      {io.ErrUnexpectedEOF, reservation.ErrUnavailable},
		"domain":      {reservation.ErrNotHolder, reservation.ErrNotHolder},
		"bad input":   {&pgconn.PgError{Code: "22021"}, nil},
		"other index": {&pgconn.PgError{Code: "23505", ConstraintName: "somebody_elses"}, nil},
	}
	words := []error{
		reservation.ErrServerInUse, reservation.ErrServiceAlreadyBound, reservation.ErrExpired, reservation.ErrUnavailable,
		reservation.ErrNotFound, reservation.ErrNotHolder, inventory.ErrNotFound,
	}
	for name, tt := range tests {
		got := translate(tt.err)
		require.ErrorIs(t, got, tt.err, "%s: the cause is kept", name)
		for _, word := range words {
			require.Equal(t, errors.Is(tt.want, word), errors.Is(got, word), "%s: %v", name, word)
		}
		if tt.want == nil {
			require.Equal(t, tt.err, got, name)
		}
	}
	require.NoError(t, translate(nil))
	require.ErrorIs(t, notFound(fmt.Errorf("scan: %w", pgx.ErrNoRows)), reservation.ErrNotFound)
	require.ErrorIs(t, notFound(io.EOF), reservation.ErrUnavailable)
}

// Inside a candidate's savepoint only five things are an answer; everything else is an error, and never "taken".
//
// Requirements: R22, R23, R29, R31
func TestOutcomeOfACandidate(t *testing.T) {
	t.Parallel()
	taken := func(constraint string) error { return &pgconn.PgError{Code: "23505", ConstraintName: constraint} }
	made := &reservation.Reservation{}
	tests := map[string]struct {
		answer judged
		err    error
		want   allocation.TryOutcome // empty: an error
	}{
		"reserved":                          {answer: judged{known: true, locked: true, made: made}, want: allocation.TryReserved},
		"locked by somebody":                {answer: judged{known: true}, want: allocation.TrySkipped},
		"a held row stands in the way":      {answer: judged{known: true, locked: true, held: true}, want: allocation.TrySkipped},
		"no longer fits":                    {answer: judged{known: true, locked: true}, want: allocation.TryStale},
		"not there any more":                {want: allocation.TryStale},
		"lost by the index":                 {err: taken("reservations_one_held_per_server"), want: allocation.TryLost},
		"lost by the occupancy":             {err: taken("occupancy_one_per_server"), want: allocation.TryLost},
		"the key got one":                   {err: taken("reservations_one_per_key"), want: allocation.TryKeyTaken},
		"the order line got one":            {err: taken("occupancy_one_per_order_line"), want: allocation.TryLineTaken},
		"not locked in time":                {err: &pgconn.PgError{Code: "55P03"}, want: allocation.TrySkipped},
		"another index":                     {err: taken("bindings_one_per_reservation")},
		"a rule":                            {err: &pgconn.PgError{Code: "23514", ConstraintName: "reservations_occupy"}},
		"a deadlock repeats from the start": {err: &pgconn.PgError{Code: "40P01"}},
		"a poisoned transaction":            {err: &pgconn.PgError{Code: "25P02"}},
		"the connection broke":              {err: io.ErrUnexpectedEOF},
		"an answer beside an error":         {answer: judged{known: true, locked: true, made: made}, err: io.ErrUnexpectedEOF},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := outcomeOf(tt.answer, tt.err)
			require.Equal(t, tt.want, got)
			if tt.want == "" {
				require.Equal(t, tt.err, err)
				return
			}
			require.NoError(t, err)
		})
	}
}

// A server that lets nobody in, and a pool that is closed, are unavailable, whatever the reason that is given: no
// statement was run.
func TestNobodyLetInIsUnavailable(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(postgrestest.EmptyURL(t))
	require.NoError(t, err)
	config.Database = "there_is_no_such_database"
	_, err = pgx.ConnectConfig(t.Context(), config)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, clashUnavailable, clashOf(err))

	pool := postgrestest.New(t)
	pool.Close()
	_, err = NewReservations(pool).Reservation(t.Context(), "acme", reservation.ID(formatID("res_", newID())))
	require.ErrorIs(t, err, reservation.ErrUnavailable)
}
