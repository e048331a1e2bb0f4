package postgrestest_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/migrations"
	"allocator/store/postgres/postgrestest"
)

func databaseOf(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var name string
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT current_database()").Scan(&name))
	return name
}

func TestParallelTestsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	for i := range 10 {
		t.Run(fmt.Sprintf("database %d", i), func(t *testing.T) {
			t.Parallel()
			pool := postgrestest.New(t)
			_, err := pool.Exec(t.Context(), "CREATE TABLE mine AS SELECT $1::int AS n", i)
			require.NoError(t, err, "another test's table would be in the way")

			version, err := migrations.Version(t.Context(), pool)
			require.NoError(t, err)
			require.Equal(t, migrations.Latest(), version)
		})
	}
}

func TestEmptyDatabaseHasNoSchema(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Pool(t, postgrestest.EmptyURL(t))
	version, err := migrations.Version(t.Context(), pool)
	require.NoError(t, err)
	require.Zero(t, version)
}

func TestDatabaseIsDroppedWhenTheTestEnds(t *testing.T) { //nolint:tparallel // what is looked at comes after the subtest
	t.Parallel()
	var name string
	t.Run("a test", func(t *testing.T) {
		url := postgrestest.URL(t)
		name = databaseOf(t, postgrestest.Pool(t, url))
		stranger, err := pgxpool.New(t.Context(), url)
		require.NoError(t, err)
		require.NoError(t, stranger.Ping(t.Context()), "a connection that is still open must not keep the database")
	})

	var exists bool
	pool := postgrestest.New(t)
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists))
	require.False(t, exists)
}
