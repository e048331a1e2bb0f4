package redistest_test

import (
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"allocator/locking/redistest"
)

func client(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	c := redis.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSharedServerAnswers(t *testing.T) {
	t.Parallel()
	require.NoError(t, client(t, redistest.URL(t)).Ping(t.Context()).Err())
}

func TestOwnServerStopsAndComesBackEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, client(t, server.URL()).Set(t.Context(), "key", "value", 0).Err())

	gone := server.Addr()
	server.Stop()
	_, err := net.Dial("tcp", gone)
	require.Error(t, err)

	require.NoError(t, server.Start(t.Context()))
	require.ErrorIs(t, client(t, server.URL()).Get(t.Context(), "key").Err(), redis.Nil)
}

func TestGivenServerIsUsed(t *testing.T) {
	given := os.Getenv("REDIS_URL")
	t.Setenv("REDIS_URL", "redis://given:6379")
	require.Equal(t, "redis://given:6379", redistest.URL(t))
	t.Setenv("REDIS_URL", given)
}

// Without a server program a test is skipped with a sentence that says what to do.
func TestWithoutAServerTestsAreSkipped(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	said := &skipped{TB: t}
	func() {
		defer func() { _ = recover() }()
		redistest.Start(said)
	}()
	require.Equal(t, "skipped: there is no redis-server: run tools/setup.sh test, or name a running Redis in REDIS_URL", said.why)
}

// skipped is a test that remembers why it was skipped, and ends by a panic.
type skipped struct {
	testing.TB

	why string
}

func (s *skipped) Skip(args ...any) {
	s.why = args[0].(string)
	panic(s.why)
}
