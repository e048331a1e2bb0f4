package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/migrations"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// The service does not start on a database on which its promises cannot be kept, and says what to do instead.
//
// Faults: F-C7, F-D2.
func TestCheckServer(t *testing.T) {
	t.Parallel()
	thisDatabase := func(setting string) string {
		return `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET ` + setting + `', current_database()); END $$`
	}
	thisRole := func(setting string) string {
		return `DO $$ BEGIN EXECUTE format('ALTER ROLE %I IN DATABASE %I SET ` + setting + `', current_user, current_database()); END $$`
	}
	newer := fmt.Sprintf(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, true)`, migrations.Latest()+1)
	tests := map[string]struct {
		prepare    []string
		parameters map[string]string
		want       error
		says       string
	}{
		"a fresh, migrated database":            {},
		"asynchronous commit of the database":   {prepare: []string{thisDatabase("synchronous_commit = off")}, want: ErrAsyncCommit, says: "synchronous_commit"},
		"asynchronous commit of the role":       {prepare: []string{thisRole("synchronous_commit = off")}, want: ErrAsyncCommit},
		"asynchronous commit of the connection": {parameters: map[string]string{"synchronous_commit": "off"}, want: ErrAsyncCommit},
		"commit that waits for the disk alone":  {prepare: []string{thisDatabase("synchronous_commit = local")}},
		"a read-only database":                  {prepare: []string{thisDatabase("default_transaction_read_only = on")}, want: ErrReadOnly, says: "the primary"},
		"a read-only role":                      {prepare: []string{thisRole("default_transaction_read_only = on")}, want: ErrReadOnly},
		"a pooler that drops the timeouts":      {parameters: map[string]string{"idle_in_transaction_session_timeout": "0"}, want: ErrNoTimeout, says: "ALTER ROLE"},
		"an older schema": {
			prepare: []string{fmt.Sprintf(`DELETE FROM goose_db_version WHERE version_id = %d`, migrations.Latest())},
			want:    ErrSchemaBehind, says: "allocator migrate",
		},
		"no schema at all":                       {prepare: []string{`DROP TABLE goose_db_version`}, want: ErrSchemaBehind},
		"a newer schema that serves this binary": {prepare: []string{newer}},
		"a newer schema that does not": {
			prepare: []string{newer, fmt.Sprintf(`UPDATE schema_compatibility SET oldest_binary = %d`, migrations.Latest()+1)},
			want:    ErrSchemaAhead, says: fmt.Sprintf("this is %d", migrations.Latest()),
		},
		"an index that arbitrates is missing": {prepare: []string{`DROP INDEX reservations_one_held_per_server`}, want: ErrNoArbiter, says: "reservations_one_held_per_server"},
		"an index that arbitrates is invalid": {
			prepare: []string{`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'bindings_one_active_per_server'::regclass`},
			want:    ErrNoArbiter, says: "bindings_one_active_per_server",
		},
		"an index that only looks like one": {
			prepare: []string{`DROP INDEX reservations_one_held_per_server`, `CREATE INDEX reservations_one_held_per_server ON reservations (server_id)`},
			want:    ErrNoArbiter, says: "REINDEX",
		},
		"a newer schema that does not say": {prepare: []string{newer, `DROP TABLE schema_compatibility`}, want: ErrSchemaAhead},
		"an old PostgreSQL": { // a function in front of the server's own answers for it
			prepare: []string{`CREATE SCHEMA old`, `CREATE FUNCTION old.current_setting(name text) RETURNS text LANGUAGE sql
				RETURN CASE name WHEN 'server_version_num' THEN '140013' ELSE pg_catalog.current_setting(name) END`},
			parameters: map[string]string{"search_path": "old,pg_catalog,public"},
			want:       ErrTooOld, says: "this is 14",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection := postgrestest.URL(t)
			prepared := postgrestest.Pool(t, connection)
			for _, sql := range tt.prepare {
				execute(t, prepared, sql)
			}
			pool := openPool(t, postgrestest.With(t, connection, tt.parameters), 1)
			err, ready := CheckServer(t.Context(), pool), NewHealth(pool).Ready(t.Context())
			if tt.want == nil {
				require.NoError(t, err)
				require.NoError(t, ready)
				return
			}
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.says)
			if !errors.Is(tt.want, ErrNoTimeout) && !errors.Is(tt.want, ErrNoArbiter) { // which are asked at the start alone
				require.ErrorIs(t, ready, tt.want)
			}
		})
	}
}

// An exhausted pool, or a database that is away, shows as "unavailable" and does not hang the check.
func TestCheckServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	pool := openPool(t, postgrestest.URL(t), 1)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, NewHealth(pool).Ready(ctx), reservation.ErrUnavailable)
	conn.Release()
	require.NoError(t, NewHealth(pool).Ready(t.Context()))

	away := awayPool(t)
	require.ErrorIs(t, CheckServer(t.Context(), away), reservation.ErrUnavailable)
}
