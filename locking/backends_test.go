package locking

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"allocator/locking/redistest"
	"allocator/store/postgres/embedded"
	"allocator/store/postgres/postgrestest"
)

// hang bounds waits that would otherwise never end when something is broken.
const hang = time.Minute

// patience is the time-out of backends in tests of faults: short, since they are waited for.
const patience = 500 * time.Millisecond

// long is a time to live that does not end within a test.
const long = time.Hour

var silent = slog.New(slog.DiscardHandler)

// bench is one backend with nobody's locks in it.
type bench struct {
	// node is what one more process would open.
	node func(t *testing.T) Locker
	// lapse lets the time to live of a lock on the key pass, or ends the session that holds it, without its holder's doing.
	lapse func(t *testing.T, key string)
}

// benches are the backends that the conformance suite runs against. Redis is there twice: with scripts, which every
// version can, and with the commands of 8.4.
var benches = map[string]func(t *testing.T) bench{
	BackendMemory:              memoryBench,
	BackendRedis:               func(t *testing.T) bench { t.Helper(); return redisBench(t, asRedis70) },
	BackendRedis + " commands": func(t *testing.T) bench { t.Helper(); return redisBench(t, asRedis84) },
	BackendPostgres:            postgresBench,
}

// onEveryBackend runs the test against each backend.
func onEveryBackend(t *testing.T, test func(t *testing.T, b bench)) {
	t.Helper()
	for name, open := range benches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// clock is a time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// memoryBench has one Memory for all nodes: they are goroutines of one process.
func memoryBench(*testing.T) bench {
	c := &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	m := NewMemory()
	m.now = c.Now
	return bench{
		node:  func(*testing.T) Locker { return m },
		lapse: func(*testing.T, string) { c.advance(MaxTTL) },
	}
}

func redisBench(t *testing.T, version func([]string) []string) bench {
	t.Helper()
	address, err := url.Parse(redistest.URL(t))
	require.NoError(t, err)
	p := newRedisProxy(t, address.Host, version)
	direct := redisClient(t, address.String())
	address.Host = p.addr()
	config := RedisConfig{URL: address.String(), KeyPrefix: "test:" + rand.Text() + ":"}
	return bench{
		node: func(t *testing.T) Locker { t.Helper(); return openRedis(t, config) },
		lapse: func(t *testing.T, key string) {
			t.Helper()
			require.NoError(t, direct.Del(t.Context(), config.KeyPrefix+key).Err())
		},
	}
}

func openRedis(t *testing.T, config RedisConfig) *Redis {
	t.Helper()
	r, err := OpenRedis(config, silent)
	require.NoError(t, err)
	cleanUp(t, r)
	return r
}

func redisClient(t *testing.T, address string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(address)
	require.NoError(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func postgresBench(t *testing.T) bench {
	t.Helper()
	address := postgrestest.EmptyURL(t)
	return bench{
		node:  func(t *testing.T) Locker { t.Helper(); return openPostgres(t, PostgresConfig{URL: address}) },
		lapse: func(t *testing.T, key string) { t.Helper(); endSession(t, address, key) },
	}
}

func openPostgres(t *testing.T, config PostgresConfig) *Postgres {
	t.Helper()
	p, err := OpenPostgres(config, silent)
	require.NoError(t, err)
	cleanUp(t, p)
	return p
}

func cleanUp(t *testing.T, l Locker) {
	t.Helper()
	t.Cleanup(func() { _ = l.Cleanup(context.WithoutCancel(t.Context())) })
}

// endSession ends the session that holds a lock, and returns when it is gone.
func endSession(t *testing.T, address, key string) {
	t.Helper()
	conn := connectTo(t, address)
	var pid int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`, nameOf(key)).Scan(&pid))
	var ended bool
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT pg_terminate_backend($1, 60000)`, pid).Scan(&ended))
	require.True(t, ended)
}

func connectTo(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// take takes a lock that must be free.
func take(t *testing.T, l Locker, key string, ttl time.Duration) *Handle {
	t.Helper()
	h, err := l.Try(t.Context(), key, ttl)
	require.NoError(t, err)
	require.NotNil(t, h, "the lock on %s is free", key)
	return h
}

// requireTaken says that somebody else has the lock, which is no failure.
func requireTaken(t *testing.T, l Locker, key string) {
	t.Helper()
	h, err := l.Try(t.Context(), key, long)
	require.NoError(t, err)
	require.Nil(t, h, "the lock on %s is taken", key)
}

// site is a backend whose server can be stopped and whose network can fail.
type site struct {
	bench

	proxy *proxy
	// near is a node that does not go through the proxy.
	near  func(t *testing.T) Locker
	stop  func(t *testing.T)
	start func(t *testing.T)
}

// sites are the backends that can fail.
var sites = map[string]func(t *testing.T) site{
	BackendRedis:               func(t *testing.T) site { t.Helper(); return redisSite(t, asRedis70) },
	BackendRedis + " commands": func(t *testing.T) site { t.Helper(); return redisSite(t, asRedis84) },
	BackendPostgres:            postgresSite,
}

func onEverySite(t *testing.T, test func(t *testing.T, s site)) {
	t.Helper()
	for name, open := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

const impatient = "?dial_timeout=500ms&read_timeout=500ms&write_timeout=500ms"

func redisSite(t *testing.T, version func([]string) []string) site {
	t.Helper()
	server := redistest.Start(t)
	p := newRedisProxy(t, server.Addr(), version)
	far := RedisConfig{URL: server.URLAt(p.addr()) + impatient}
	return site{
		bench: bench{
			node: func(t *testing.T) Locker { t.Helper(); return openRedis(t, far) },
			lapse: func(t *testing.T, key string) {
				t.Helper()
				require.NoError(t, redisClient(t, server.URL()).Del(t.Context(), DefaultKeyPrefix+key).Err())
			},
		},
		proxy: p,
		near:  func(t *testing.T) Locker { t.Helper(); return openRedis(t, RedisConfig{URL: server.URL()}) },
		stop:  func(*testing.T) { server.Stop() },
		start: func(t *testing.T) { t.Helper(); require.NoError(t, server.Start(t.Context())); p.lead(server.Addr()) },
	}
}

func postgresSite(t *testing.T) site {
	t.Helper()
	dir := filepath.Join(postgrestest.Dir(t), "postgres")
	var server *embedded.Server
	start := func(t *testing.T) {
		t.Helper()
		var err error
		server, err = embedded.Start(t.Context(), embedded.Options{DataDir: dir, FsyncOffForTests: true})
		require.NoError(t, err)
	}
	start(t)
	t.Cleanup(func() { _ = server.Stop(context.WithoutCancel(t.Context())) })
	host := func() string { return hostOf(t, server.URL()) }
	p := newProxy(t, host())
	far := PostgresConfig{URL: throughProxy(t, server.URL(), p), Timeout: patience}
	return site{
		bench: bench{
			node:  func(t *testing.T) Locker { t.Helper(); return openPostgres(t, far) },
			lapse: func(t *testing.T, key string) { t.Helper(); endSession(t, server.URL(), key) },
		},
		proxy: p,
		near:  func(t *testing.T) Locker { t.Helper(); return openPostgres(t, PostgresConfig{URL: server.URL()}) },
		stop: func(t *testing.T) {
			t.Helper()
			now, cancel := context.WithCancel(t.Context())
			cancel() // immediately, as in a crash
			_ = server.Stop(now)
		},
		start: func(t *testing.T) { t.Helper(); start(t); p.lead(host()) },
	}
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Host
}

func throughProxy(t *testing.T, address string, p *proxy) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.Host = p.addr()
	return u.String()
}
