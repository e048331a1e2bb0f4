package locking

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// Behind a pooler the session of a lock would go to others together with the lock. It is recognised, at start-up and
// again at each try, and no lock is taken.
//
// Requirements: L21. Faults: F-N5.
func TestPostgresRefusesAPooler(t *testing.T) {
	t.Parallel()
	for name, pooler := range map[string]func(t *testing.T, address string) string{
		"pgbouncer in transaction mode": func(t *testing.T, address string) string { t.Helper(); return postgrestest.Bouncer(t, address) },
		"what any pooler does":          poolerLike,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := postgrestest.EmptyURL(t)
			pooled := pooler(t, address)
			l := openPostgres(t, PostgresConfig{URL: pooled})
			require.ErrorIs(t, l.Check(t.Context()), ErrPooled)
			h, err := l.Try(t.Context(), "key", long)
			require.Nil(t, h)
			require.ErrorIs(t, err, ErrPooled)
			require.ErrorIs(t, err, ErrBackend)
			require.Zero(t, read[int](t, connectTo(t, address), heldLocks))

			opened, err := Open(t.Context(), Config{Backend: BackendPostgres, PG: PostgresConfig{URL: pooled}}, silent)
			require.Nil(t, opened)
			require.ErrorIs(t, err, ErrPooled)
			require.ErrorContains(t, err, "give it the address of PostgreSQL itself")
		})
	}
}

// A proxy that only passes bytes on is no pooler.
//
// Requirements: L21.
func TestPostgresThroughAProxyIsFine(t *testing.T) {
	t.Parallel()
	address := postgrestest.EmptyURL(t)
	l := openPostgres(t, PostgresConfig{URL: throughProxy(t, address, newProxy(t, hostOf(t, address)))})
	require.NoError(t, l.Check(t.Context()))
	take(t, l, "key", long)
}

// poolerLike names another process at the opening of a session than the one that answers later. Clients need that name
// to cancel statements, so a pooler has to give out one of its own.
func poolerLike(t *testing.T, address string) string {
	t.Helper()
	p := newProxy(t, hostOf(t, address))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = func(text []byte) []byte {
		name := bytes.Index(text, []byte("K\x00\x00\x00\x0c"))
		if name < 0 {
			return text
		}
		text = bytes.Clone(text)
		text[name+5] ^= 0xd5 // the first byte of the process's number, which poolers draw from all 32 bits
		return text
	}
	return throughProxy(t, address, p)
}
