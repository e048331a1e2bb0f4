package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/lease"
	"allocator/store/postgres/postgrestest"
)

// Presence is what counts, the whole first and then by part, each with its holder and its end.
//
// Requirements: E14, E31.
func TestPresenceIsInOrder(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for _, part := range []string{"b", "a", "Z", "10", "9"} {
		b.acquire("anna", keyOf("rack:A12", part), 60)
	}
	b.acquire("anna", keyOf("rack:A12"), 30)
	b.acquire("anna", keyOf("rack:A12", "gone"), 10)
	b.acquire("anna", keyOf("rack:A123"), 60)
	b.advance(t, 10*time.Second)
	p, err := b.two.Presence(t.Context(), writer("bob"), "rack:A12")
	require.NoError(t, err)
	parts := []string{}
	for _, l := range p.Leases {
		parts = append(parts, l.Key.Part)
	}
	require.Equal(t, []string{"", "10", "9", "Z", "a", "b"}, parts)
	require.Equal(t, int64(20), p.Leases[0].SecondsLeftAt(p.Now))
	require.Equal(t, "the one called anna", p.Leases[0].Holder.Name)
	require.Equal(t, b.now(t), p.Now)
}

// Where statements travel as text, as behind some poolers, presence is read from text.
//
// Requirements: E31.
func TestPresenceIsReadFromText(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for _, part := range []string{"b", "a", "Z"} {
		b.acquire("anna", keyOf("rack:A12", part), 60)
	}
	b.advance(t, time.Millisecond)
	reader := lease.Writer{Organization: org}
	binary, _, err := NewLeasePresence(b.pool).Presence(t.Context(), reader, "rack:A12")
	require.NoError(t, err)
	pool := openPool(t, postgrestest.With(t, b.url, map[string]string{"default_query_exec_mode": "simple_protocol"}), 1)
	text, may, err := NewLeasePresence(pool).Presence(t.Context(), reader, "rack:A12")
	require.NoError(t, err)
	require.True(t, may)
	require.Equal(t, binary, text)
	require.Len(t, text.Leases, 3)
	require.Equal(t, b.now(t), text.Now)
}

// Presence, right and clock are one statement, whoever asks and whatever there is.
//
// Requirements: E19, E30, E31.
func TestPresenceIsOneStatement(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	b.acquire("anna", keyOf("rack:A12"), 60)
	counted := &countedStatements{}
	config := b.pool.Config()
	config.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	service := lease.NewService(NewLeases(pool), NewLeasePolicy(pool), lease.ReadPresenceBy(NewLeasePresence(pool)))
	for name, credential := range map[string]string{"on the database": "", "a key that is none": "key_00000000000070008000000000000001"} {
		for resource, n := range map[string]int{"rack:A12": 1, "rack:A13": 0} {
			counted.Store(0)
			p, err := service.Presence(t.Context(), lease.Writer{Organization: org, Holder: lease.Holder{ID: "x"}, Credential: credential}, resource)
			require.Equal(t, int64(1), counted.Load(), name)
			if credential == "" {
				require.NoError(t, err)
				require.Len(t, p.Leases, n)
			} else {
				require.Equal(t, lease.ErrEditRefused, err)
				require.Zero(t, p)
			}
		}
	}
}
