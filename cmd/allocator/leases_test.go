package main

import (
	"bufio"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
	"allocator/store/postgres/postgrestest"
)

// Two processes over one database: who watches at one is told of what is done at the other, a lease that one gave is kept and
// seen by the other, and a killed process takes no lease along. The command line takes a lease around what it writes, and
// says who is at it already.
//
// Requirements: E08, E17, E25. Cases: LE-07.
func TestLeasesOverTwoProcesses(t *testing.T) {
	t.Parallel()
	database := postgrestest.URL(t)
	first, second := serve(t, database, "--migrate"), serve(t, database)
	asked[client.Organization](t, first.admin(), "orgs", "create", "Acme", "--id", "acme")
	env := first.caller("acme", "operator")
	elsewhere := []string{"ALLOCATOR_URL=" + second.url, env[1]}
	addServer(t, env, "one")
	one, two := apiOf(t, env), apiOf(t, elsewhere)
	servers, err := one.ListServersWithResponse(t.Context(), &client.ListServersParams{})
	require.NoError(t, err)
	id := servers.JSON200.Items[0].ID
	resource := "server:" + id

	watching := watchAt(t, elsewhere, resource)
	require.NotContains(t, watching(), `"name":"Bob"`)
	_, err = one.AcquireLeaseWithResponse(t.Context(), resource, &client.AcquireLeaseParams{LeaseHolder: "bob"}, client.LeaseRequest{Seconds: 3600, Name: "Bob"})
	require.NoError(t, err)
	require.Contains(t, watching(), `"name":"Bob"`, "told by the other process")

	got := invoke(t, elsewhere, "servers", "state", id, "maintenance", "--reason", "fan")
	require.Equal(t, exitRetry, got.code)
	require.Contains(t, got.stderr, "Bob is editing "+resource)
	first.signal(syscall.SIGKILL)
	kept, err := two.KeepLeaseWithResponse(t.Context(), resource, &client.KeepLeaseParams{LeaseHolder: "bob"}, client.LeaseRequest{Seconds: 3600})
	require.NoError(t, err)
	require.Equal(t, "Bob", kept.JSON200.Holder.Name)
	_, err = two.ReleaseLeaseWithResponse(t.Context(), resource, &client.ReleaseLeaseParams{LeaseHolder: "bob"})
	require.NoError(t, err)

	got = invoke(t, elsewhere, "servers", "state", id, "maintenance", "--reason", "fan")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "maintenance fan")
	present, err := two.GetPresenceWithResponse(t.Context(), resource, nil)
	require.NoError(t, err)
	require.Empty(t, present.JSON200.Leases, "given back")
	require.Equal(t, exitNotFound, invoke(t, elsewhere, "servers", "state", "srv_"+strings.Repeat("0", 32), "ready", "--reason", "x").code)
	second.end(syscall.SIGTERM)
}

// Two runs of one process id, as in two containers, are two holders.
//
// Requirements: E08.
func TestEachRunOfTheCommandLineIsAHolder(t *testing.T) {
	t.Parallel()
	one, another := editHolder(), editHolder()
	require.NotEqual(t, one, another)
	require.Regexp(t, `^command-line-[A-Z2-7]{26}$`, one)
}

func apiOf(t *testing.T, env []string) *client.ClientWithResponses {
	t.Helper()
	api, err := client.New(strings.TrimPrefix(env[0], "ALLOCATOR_URL="), strings.TrimPrefix(env[1], "ALLOCATOR_API_KEY="))
	require.NoError(t, err)
	return api
}

// watchAt watches a resource and returns what waits for the data of the next event.
func watchAt(t *testing.T, env []string, resource string) (next func() string) {
	t.Helper()
	url := strings.TrimPrefix(env[0], "ALLOCATOR_URL=") + "/v1/leases/" + resource + "/events"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+strings.TrimPrefix(env[1], "ALLOCATOR_API_KEY="))
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	return func() string {
		for lines.Scan() {
			if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
				return data
			}
		}
		require.NoError(t, lines.Err())
		return ""
	}
}
