package postgrestest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/migrations"
)

// ownTemplate is a template name of the test's own.
func ownTemplate(t *testing.T, adminURL string) string {
	t.Helper()
	name := "allocator_template_test_" + randomSuffix()
	t.Cleanup(func() {
		require.NoError(t, administer(context.WithoutCancel(t.Context()), adminURL, "ALTER DATABASE "+name+" WITH IS_TEMPLATE false", "DROP DATABASE "+name+" WITH (FORCE)"))
	})
	return name
}

func requireMigratedCopies(t *testing.T, server server, template string) {
	t.Helper()
	version, err := migrations.Version(t.Context(), Pool(t, freshDatabase(t, server, template)))
	require.NoError(t, err)
	require.Equal(t, migrations.Latest(), version)
}

func TestTemplateIsMadeOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	server := mustServer(t)
	name := ownTemplate(t, server.adminURL)
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- ensureTemplate(t.Context(), server.adminURL, name) }()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	requireMigratedCopies(t, server, name)
}

func TestUnfinishedTemplateIsMadeAnew(t *testing.T) {
	t.Parallel()
	server := mustServer(t)
	name := ownTemplate(t, server.adminURL)
	require.NoError(t, administer(t.Context(), server.adminURL, "CREATE DATABASE "+name)) // and killed before the migrations

	require.NoError(t, ensureTemplate(t.Context(), server.adminURL, name))
	requireMigratedCopies(t, server, name)
}
