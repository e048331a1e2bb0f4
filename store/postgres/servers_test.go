package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/inventory"
	"allocator/inventory/importer"
)

func TestServersAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	for name, server := range map[string]inventory.Server{
		"everything known": fullServer("m-1"), "everything unknown": bareServer("m-2"), "known to have nothing": noneServer("m-3"),
	} {
		created, err := b.service.Create(t.Context(), by, server)
		require.NoError(t, err, name)

		read, err := b.service.Get(t.Context(), "acme", created.ID)
		require.NoError(t, err, name)
		require.Equal(t, created, read, name)

		require.Regexp(t, `^srv_[0-9a-f]{32}$`, string(read.ID), name)
		require.False(t, read.CreatedAt.IsZero(), name)
		require.False(t, read.UpdatedAt.Before(read.CreatedAt), name)
		server.ID, server.Version, server.CreatedAt, server.UpdatedAt = read.ID, 1, read.CreatedAt, read.UpdatedAt
		require.Equal(t, server, read, name)
	}
}

// The database ranks by its generated column and Go by Server.Size; the sample has what real machines have.
func TestServerSizeIsTheSameInTheDatabase(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	servers, err := importer.Sample()
	require.NoError(t, err)
	servers = append(servers, fullServer("m-1"), bareServer("m-2"), noneServer("m-3"))
	created, err := b.service.CreateMany(t.Context(), by, servers)
	require.NoError(t, err)
	require.Equal(t, inventory.Created{Created: len(servers)}, created)

	list, err := b.service.List(t.Context(), "acme", inventory.Filter{})
	require.NoError(t, err)
	rows, err := b.pool.Query(t.Context(), `SELECT size FROM servers ORDER BY id`)
	require.NoError(t, err)
	sizes, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	require.Len(t, list, len(servers))
	for i, got := range list {
		require.Equal(t, got.Size(), sizes[i], got.ExternalID)
		want := servers[i]
		want.ID, want.Version, want.CreatedAt, want.UpdatedAt = got.ID, 1, got.CreatedAt, got.UpdatedAt
		require.Equal(t, want, got, "in the order in which they were given")
	}
}

// A frozen server is the server that was read at that moment.
func TestServersAreFrozenAsTheyAre(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	for _, server := range []inventory.Server{fullServer("m-1"), bareServer("m-2"), noneServer("m-3")} {
		created, err := b.service.Create(t.Context(), by, server)
		require.NoError(t, err)
		frozen := freeze(t, b.pool, created.ID)
		thawed, err := decodeServer(frozen)
		require.NoError(t, err)
		require.Equal(t, created, thawed)
	}
}

func freeze(t *testing.T, pool *pgxpool.Pool, id inventory.ServerID) (frozen []byte) {
	t.Helper()
	key, ok := parseID(serverIDPrefix, string(id))
	require.True(t, ok)
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT freeze_server(s) FROM servers s WHERE id = $1`, key).Scan(&frozen))
	return frozen
}

func TestServersOfAnotherOrganizationAreUnknown(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	created, err := b.service.Create(t.Context(), by, fullServer("m-1"))
	require.NoError(t, err)

	stranger := by
	stranger.Organization = "other"
	for name, id := range map[string]inventory.ServerID{
		"one that exists elsewhere":  created.ID,
		"one that exists nowhere":    "srv_0190c6d2b0c47d3f8a5e9b1c2d3e4f50",
		"the same in another form":   inventory.ServerID(strings.ToUpper(string(created.ID))),
		"an id of another kind":      inventory.ServerID(strings.Replace(string(created.ID), "srv_", "res_", 1)),
		"no id at all":               "",
		"an id with a blank":         created.ID + " ",
		"an id with a NUL":           created.ID[:35] + "\x00",
		"a uuid as the database has": "0190c6d2-b0c4-7d3f-8a5e-9b1c2d3e4f50",
	} {
		_, err := b.service.Get(t.Context(), "other", id)
		require.Equal(t, inventory.ErrNotFound, err, name)
		_, err = b.service.Update(t.Context(), stranger, id, inventory.Patch{Name: inventory.To("x")}, 0)
		require.ErrorIs(t, err, inventory.ErrNotFound, name)
	}
	list, err := b.service.List(t.Context(), "other", inventory.Filter{})
	require.NoError(t, err)
	require.Empty(t, list)
}
