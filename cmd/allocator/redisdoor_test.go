package main

import (
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// An `up` with the door serves an ordinary client with the key that it printed, and ends in order with one connected.
//
// Requirements: D18.
func TestUpServesClientsOfRedis(t *testing.T) {
	t.Parallel()
	up := raiseUp(t, dataDir(t), "--redis-listen", "127.0.0.1:0")
	c := redis.NewClient(&redis.Options{Addr: up.RedisAddress, Password: up.APIKey})
	t.Cleanup(func() { _ = c.Close() })
	got, err := c.SetNX(t.Context(), "lock:billing-run", "tok", hang).Result()
	require.NoError(t, err)
	require.True(t, got)
	require.Equal(t, "tok", c.Get(t.Context(), "lock:billing-run").Val())
	up.stop(syscall.SIGTERM)
}

// Nobody gets a door that was not asked for, and none is opened to a network in the clear unless that is said.
func TestRedisDoorIsClosedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	s := serve(t, url)
	s.end(syscall.SIGTERM)
	require.NotContains(t, s.stderr.String(), `"redis":"1`)

	env := []string{testTokenKeys, "ALLOCATOR_DATABASE_URL=" + url}
	got := invoke(t, env, "serve", "--listen", "127.0.0.1:0", "--redis-listen", ":0")
	require.Equal(t, exitFailure, got.code, got.stderr)
	require.Contains(t, got.stderr, "keys and tokens travel in the clear")
	s = serve(t, url, "--redis-listen", ":0", "--redis-plain")
	s.end(syscall.SIGTERM)
}
