package migrations_test

import (
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"

	"allocator/migrations"
	"allocator/store/postgres/postgrestest"
)

func TestVersionCountsUpFromAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	require.Zero(t, versionOf(t, postgrestest.Pool(t, postgrestest.EmptyURL(t))))
	require.Equal(t, migrations.Latest(), versionOf(t, postgrestest.New(t)))
}

func TestNumbersHaveNoHoles(t *testing.T) {
	t.Parallel()
	sql, err := filepath.Glob("*.sql")
	require.NoError(t, err)
	const river = 1 // River's tables have a number and no file
	require.Equal(t, migrations.Latest(), int64(len(sql)+river))
}

func TestRiverSchemaIsTheNewestThatRiverKnows(t *testing.T) {
	t.Parallel()
	migrator, err := rivermigrate.New(riverpgxv5.New(postgrestest.New(t)), nil)
	require.NoError(t, err)
	result, err := migrator.Validate(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, result.OK, "River in go.mod wants a newer schema: add a migration for it: %v", result.Messages)
}

func TestContentHashFollowsNamesAndContent(t *testing.T) {
	t.Parallel()
	files := func(name, content string) fs.FS { return fstest.MapFS{name: {Data: []byte(content)}} }
	hashes := map[string]string{
		"the first":       migrations.ContentHashOf(files("00001_a.sql", "CREATE TABLE a ()")),
		"another name":    migrations.ContentHashOf(files("00001_b.sql", "CREATE TABLE a ()")),
		"another content": migrations.ContentHashOf(files("00001_a.sql", "CREATE TABLE b ()")),
		"no migration":    migrations.ContentHashOf(fstest.MapFS{}),
	}
	seen := map[string]string{}
	for sentence, hash := range hashes {
		require.NotContains(t, seen, hash, "%s hashes like %s", sentence, seen[hash])
		seen[hash] = sentence
	}
	require.Equal(t, hashes["the first"], migrations.ContentHashOf(files("00001_a.sql", "CREATE TABLE a ()")))
}
