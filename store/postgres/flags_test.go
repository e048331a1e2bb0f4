package postgres_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/events"
	"allocator/featureflags"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

var by = featureflags.By{ActorKind: "key", ActorID: "key_1", RequestID: "req-2"}

// Requirements: R62, R63.
func TestSwitchesInTheDatabase(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	createOrganization(t, pool, "demo")
	createOrganization(t, pool, "other")
	flags := featureflags.New(postgres.NewFlags(pool))
	ctx := t.Context()
	require.NoError(t, flags.Refresh(ctx))
	release, err := featureflags.NewSwitch(ctx, featureflags.NewProvider(flags))
	require.NoError(t, err)
	defer func() { require.NoError(t, release.Close(context.WithoutCancel(t.Context()))) }()
	enabled := func() [3]bool {
		return [3]bool{release.Enabled(ctx, "demo"), release.Enabled(ctx, "other"), release.Enabled(ctx, "")}
	}

	require.Equal(t, [3]bool{false, false, false}, enabled(), "off by default")
	require.NoError(t, flags.SetOverride(ctx, by, featureflags.Reservations, "demo", true))
	require.Equal(t, [3]bool{true, false, false}, enabled(), "an override without a global value")
	require.NoError(t, flags.SetGlobal(ctx, by, featureflags.Reservations, 100))
	require.NoError(t, flags.SetOverride(ctx, by, featureflags.Reservations, "demo", false))
	require.Equal(t, [3]bool{false, true, true}, enabled())
	require.NoError(t, flags.SetOverride(ctx, by, featureflags.Reservations, "demo", false))
	require.NoError(t, flags.SetGlobal(ctx, by, featureflags.Reservations, 100))

	shown, err := flags.Get(ctx, featureflags.Reservations, "")
	require.NoError(t, err)
	require.Equal(t, 100, shown.Percent)
	require.Equal(t, "key_1", shown.Changed.ActorID)
	require.Len(t, shown.Overrides, 1)
	require.Equal(t, "demo", shown.Overrides[0].OrganizationID)
	require.False(t, shown.Overrides[0].Enabled)
	require.False(t, shown.Overrides[0].Changed.At.IsZero())

	require.NoError(t, flags.DeleteOverride(ctx, by, featureflags.Reservations, "demo"))
	require.Equal(t, [3]bool{true, true, true}, enabled())
	for _, org := range []string{"demo", "nobody", "no\x00body"} {
		require.ErrorIs(t, flags.DeleteOverride(ctx, by, featureflags.Reservations, org), featureflags.ErrOverrideNotFound)
	}
	for _, org := range []string{"nobody", "no\x00body", ""} {
		require.ErrorIs(t, flags.SetOverride(ctx, by, featureflags.Reservations, org, true), featureflags.ErrOrganizationNotFound)
	}

	require.Equal(t, []string{
		events.ActionOrganizationCreated, events.ActionFlagOverrideSet, events.ActionFlagOverrideSet, events.ActionFlagOverrideDeleted,
	}, actions(auditOf(t, pool, "demo")), "what changed nothing left no entry")
	platform := auditOf(t, pool, "")
	require.Equal(t, []events.AuditEntry{{
		At: platform[0].At, ActorKind: "key", ActorID: "key_1", RequestID: "req-2", Action: events.ActionFlagSet,
		Subject: featureflags.Reservations, Outcome: events.OutcomeDone, Detail: map[string]string{"percent": "100"},
	}}, platform)
}

// Requirements: R62. Faults: F-D6.
func TestSwitchKeepsItsValueWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	createOrganization(t, pool, "demo")
	flags := featureflags.New(postgres.NewFlags(pool))
	release, err := featureflags.NewSwitch(t.Context(), featureflags.NewProvider(flags))
	require.NoError(t, err)
	defer func() { require.NoError(t, release.Close(context.WithoutCancel(t.Context()))) }()
	require.NoError(t, flags.SetOverride(t.Context(), by, featureflags.Reservations, "demo", true))

	pool.Close()
	require.Error(t, flags.Refresh(t.Context()))
	require.True(t, release.Enabled(t.Context(), "demo"))
	require.False(t, release.Enabled(t.Context(), "other"))
}
