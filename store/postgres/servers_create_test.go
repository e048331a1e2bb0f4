package postgres

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/inventory"
)

func TestServersCreateAnswersExists(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	_, err := b.service.Create(t.Context(), by, fullServer("m-1"))
	require.NoError(t, err)
	_, err = b.service.Create(t.Context(), by, bareServer("m-1"))
	require.ErrorIs(t, err, inventory.ErrExists)

	other := bareServer("m-1")
	other.Source = "netbox"
	_, err = b.service.Create(t.Context(), by, other)
	require.NoError(t, err, "another system has ids of its own")
	elsewhere := by
	elsewhere.Organization = "other"
	_, err = b.service.Create(t.Context(), elsewhere, bareServer("m-1"))
	require.NoError(t, err, "another organization never hears of it")
	require.Equal(t, []string{"server.created", "server.created"}, auditActions(t, b.pool, "acme"))
}

// The same file again creates nothing and changes nothing.
func TestServersCreateManyCanBeRepeated(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	var servers []inventory.Server
	for i := range 2*createChunk + 1 {
		servers = append(servers, bareServer(fmt.Sprintf("m-%d", i)))
	}
	created, err := b.service.CreateMany(t.Context(), by, servers[:10])
	require.NoError(t, err)
	require.Equal(t, inventory.Created{Created: 10}, created)
	before := contents(t, b.pool)

	for i := range servers {
		servers[i].Name = "renamed"
	}
	created, err = b.service.CreateMany(t.Context(), by, servers)
	require.NoError(t, err)
	require.Equal(t, inventory.Created{Created: len(servers) - 10, Existing: 10}, created)
	after := contents(t, b.pool)
	for externalID, record := range before {
		require.Equal(t, record, after[externalID], "what was there is left as it is")
	}

	created, err = b.service.CreateMany(t.Context(), by, servers)
	require.NoError(t, err)
	require.Equal(t, inventory.Created{Existing: len(servers)}, created)
	require.Equal(t, after, contents(t, b.pool))
	require.Equal(t, []string{"servers.created", "servers.created"}, auditActions(t, b.pool, "acme"),
		"the third changed nothing")
}

// One record that the database refuses takes all others with it.
func TestServersCreateManyIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	broken := bareServer("m-3")
	broken.RAID = "not validated here"
	_, err := b.store.CreateServers(t.Context(), by, []inventory.Server{bareServer("m-1"), broken, bareServer("m-2")})
	require.ErrorContains(t, err, "servers_raid_known")
	require.Empty(t, contents(t, b.pool))
	require.Empty(t, auditActions(t, b.pool, "acme"))
}

// Two imports of the same rows in opposite order wait for each other's rows; none may fail, and no row comes twice.
func TestServersCreateManyAtOnce(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	var servers []inventory.Server
	for i := range 200 {
		servers = append(servers, bareServer(fmt.Sprintf("m-%03d", i)))
	}
	backwards := slices.Clone(servers)
	slices.Reverse(backwards)

	type result struct {
		created inventory.Created
		err     error
	}
	results := make(chan result)
	for _, list := range [][]inventory.Server{servers, backwards, servers, backwards} {
		go func() {
			created, err := b.store.CreateServers(t.Context(), by, list)
			results <- result{created, err}
		}()
	}
	total := 0
	for range 4 {
		r := <-results
		require.NoError(t, r.err)
		total += r.created.Created
	}
	require.Equal(t, 200, total)
	require.Len(t, contents(t, b.pool), 200)
}
