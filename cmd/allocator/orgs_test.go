package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

func TestANewOrganizationIsToldWhatItLacks(t *testing.T) {
	t.Parallel()
	env := map[string]string{"ALLOCATOR_DATABASE_URL": postgrestest.URL(t)}
	got := inProcess(t, env, "orgs", "create", "Acme Hosting", "--id", "acme")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.NotContains(t, got.stdout, "Next")
	require.NotContains(t, got.stderr, "--database-url")

	// What is suggested works as it stands.
	require.Regexp(t, `(?m)^  allocator keys create "first key" --scope checkout,orders,support,operator,admin --org acme$`, got.stderr)
	key := inProcess(t, env, "keys", "create", "first key", "--scope", "checkout,orders,support,operator,admin", "--org", "acme")
	require.Equal(t, exitDone, key.code, key.stderr)
	require.Regexp(t, `(?m)^  allocator flags set reservations on --org acme$`, got.stderr)
	flag := inProcess(t, env, "flags", "set", "reservations", "on", "--org", "acme")
	require.Equal(t, exitDone, flag.code, flag.stderr)

	typed := inProcess(t, nil, "orgs", "create", "Other", "--id", "other", "--database-url", env["ALLOCATOR_DATABASE_URL"])
	require.Contains(t, typed.stderr, "--org other --database-url URL\n")
	remote := (&orgsCreateCmd{adminSettings: adminSettings{clientSettings: clientSettings{APIKey: "alk_x"}}}).nextSteps("default", "far")
	require.Contains(t, remote, "--org far --database-url URL\n")
	silent := inProcess(t, env, "orgs", "create", "Third", "--json")
	require.Equal(t, result{code: exitDone, stdout: silent.stdout}, silent)
}
