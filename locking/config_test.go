package locking

import (
	"context"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"allocator/locking/redistest"
	"allocator/store/postgres/postgrestest"
)

// Another backend is another word of configuration; the calling code is the same.
//
// Requirements: L10, L36.
func TestBackendIsOneLineOfConfiguration(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			c := Config{Redis: RedisConfig{KeyPrefix: "test:" + t.Name() + ":"}}
			switch backend {
			case BackendRedis:
				c.Redis.URL = redistest.URL(t)
			case BackendPostgres:
				c.PG.URL = postgrestest.EmptyURL(t)
			}
			c.Backend = backend // the line

			l, err := Open(t.Context(), c, silent)
			require.NoError(t, err)
			cleanUp(t, l)
			require.Equal(t, backend, l.Name())
			ran, err := While(t.Context(), l, "key", time.Minute, func(context.Context) error { return nil })
			require.True(t, ran)
			require.NoError(t, err)
		})
	}
}

// No backend is configured by default, which is not the same as one that is broken.
//
// Requirements: L32, L36.
func TestNoBackendIsNoLocker(t *testing.T) {
	t.Parallel()
	l, err := Open(t.Context(), Config{}, silent)
	require.NoError(t, err)
	require.Nil(t, l)
}

// A backend that is away does not keep the service from starting: no sale depends on it.
//
// Requirements: L02, L32.
func TestBackendThatIsAwayDoesNotKeepFromStarting(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	for _, c := range []Config{
		{Backend: BackendRedis, Redis: RedisConfig{URL: "redis://" + listener.Addr().String()}},
		{Backend: BackendPostgres, PG: PostgresConfig{URL: "postgres://user:s3cret@" + listener.Addr().String() + "/db?sslmode=disable"}},
	} {
		l, err := Open(t.Context(), c, silent)
		require.NoError(t, err)
		cleanUp(t, l)
		h, err := l.Try(t.Context(), "key", long)
		require.Nil(t, h)
		require.ErrorIs(t, err, ErrBackend)
		require.ErrorContains(t, err, listener.Addr().String())
		require.NotContains(t, err.Error(), "s3cret")
	}
}

// Every mistake is a sentence that names the setting.
//
// Requirements: L36.
func TestConfigurationMistakesAreNamed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config Config
		says   string
	}{
		"an unknown backend":  {Config{Backend: "etcd"}, `backend must be one of [memory redis pg], or empty for none, and is "etcd"`},
		"in capitals":         {Config{Backend: "Redis"}, `and is "Redis"`},
		"redis without a URL": {Config{Backend: BackendRedis}, "redis.url cannot be read"},
		"a wrong prefix":      {Config{Backend: BackendRedis, Redis: RedisConfig{URL: "redis://h", KeyPrefix: "a\nb"}}, "redis.key_prefix: key must not contain"},
		"pg without a URL":    {Config{Backend: BackendPostgres}, "pg.url cannot be read"},
		"pg with a wrong one": {Config{Backend: BackendPostgres, PG: PostgresConfig{URL: "postgres://u:s3cret@h:port/d"}}, "pg.url cannot be read"},
		"a negative limit":    {Config{PG: PostgresConfig{MaxLocks: -1}}, "pg.max_locks must not be negative"},
		"a negative margin":   {Config{Margin: -time.Second}, "margin must not be negative"},
		"an unknown hint":     {Config{Jobs: map[string]JobConfig{"audit": {Hint: "global"}}}, `jobs.audit.hint must be one of [node_local require_global prefer_global], and is "global"`},
	}
	for name, tt := range tests {
		err := tt.config.Validate()
		require.ErrorContains(t, err, tt.says, name)
		require.NotContains(t, err.Error(), "s3cret", name)
		l, opened := Open(t.Context(), tt.config, silent)
		require.Nil(t, l, name)
		require.EqualError(t, opened, err.Error(), name)
	}
}

// A declaration that could not work is refused at start-up, all mistakes at once.
//
// Requirements: L28, L34, L36.
func TestDeclarationMistakesAreNamed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(j *Job)
		says   string
	}{
		"no id":                   {func(j *Job) { j.ID = "" }, "id must have 1 to 64 of"},
		"an id that is no word":   {func(j *Job) { j.ID = "a b" }, "id must have 1 to 64 of"},
		"no interval":             {func(j *Job) { j.Interval = 0 }, "interval must be whole milliseconds"},
		"a broken interval":       {func(j *Job) { j.Interval += time.Microsecond }, "interval must be whole milliseconds"},
		"an interval of a week":   {func(j *Job) { j.Interval = 168 * time.Hour }, "interval must be whole milliseconds"},
		"a negative jitter":       {func(j *Job) { j.Jitter = -1 }, "jitter must be less than half of the interval"},
		"jitter up to the next":   {func(j *Job) { j.Jitter = j.Interval / 2 }, "jitter must be less than half of the interval"},
		"an unknown policy":       {func(j *Job) { j.Missed = "all" }, "missed-run policy must be one of [skip run_once]"},
		"no hint":                 {func(j *Job) { j.Hint = "" }, "hint must be one of"},
		"no expectation":          {func(j *Job) { j.Expected = 0 }, "expected run time must be"},
		"expected to take a week": {func(j *Job) { j.Expected = 168 * time.Hour }, "expected run time must be"},
		"nothing to do":           {func(j *Job) { j.Run = nil }, "it has nothing to run"},
	}
	for name, tt := range tests {
		job := audit(NodeLocal)
		tt.change(&job)
		_, err := NewScheduler(SchedulerOptions{Jobs: []Job{job}, Log: silent})
		require.ErrorContains(t, err, tt.says, name)
	}
	_, err := NewScheduler(SchedulerOptions{
		Jobs: []Job{audit(NodeLocal), audit(NodeLocal)}, Config: Config{Jobs: map[string]JobConfig{"audti": {Hint: NodeLocal}}}, Log: silent,
	})
	require.ErrorContains(t, err, `job "audit" is declared twice`)
	require.ErrorContains(t, err, "jobs.audti: there is no job of this id")

	_, err = NewScheduler(SchedulerOptions{Jobs: []Job{audit(NodeLocal)}, Config: Config{Margin: 200 * time.Hour}, Log: silent})
	require.ErrorContains(t, err, "expected run time, jitter and margin together: ttl_ms must be")
}

// A standby has advisory locks of its own. Of several addresses the one that takes writes is wanted, unless the URL says
// which is.
//
// Requirements: L36.
func TestPostgresLocksWantThePrimary(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		url  string
		asks any // what a connection must pass; nil: anything answers
	}{
		"one address":                {"postgres://u@a:5432/d", nil},
		"one address, TLS or not":    {"postgres://u@a:5432/d?sslmode=prefer", nil},
		"two hosts":                  {"postgres://u@a:5432,b:5432/d?sslmode=disable", pgconn.ValidateConnectTargetSessionAttrsReadWrite},
		"two ports":                  {"postgres://u@a:5432,a:5433/d?sslmode=disable", pgconn.ValidateConnectTargetSessionAttrsReadWrite},
		"two hosts, and which it is": {"postgres://u@a,b/d?target_session_attrs=primary", pgconn.ValidateConnectTargetSessionAttrsPrimary},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := postgresConnection(tt.url)
			require.NoError(t, err)
			if tt.asks == nil {
				require.Nil(t, config.ValidateConnect)
				return
			}
			require.NotNil(t, config.ValidateConnect)
			require.Equal(t, reflect.ValueOf(tt.asks).Pointer(), reflect.ValueOf(config.ValidateConnect).Pointer())
		})
	}
}
