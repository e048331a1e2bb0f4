package locking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// BackendRedis is the name of the backend that locks in one Redis server.
const BackendRedis = "redis"

// DefaultKeyPrefix stands before every key in Redis unless another one is configured.
const DefaultKeyPrefix = "allocator:lock:"

// redisTimeout bounds what one operation waits for Redis where neither the URL nor the caller's context says less.
const redisTimeout = 2 * time.Second

// RedisConfig says which Redis keeps the locks.
type RedisConfig struct {
	URL       string // redis://user:password@host:6379/0, or rediss:// with TLS
	KeyPrefix string // default DefaultKeyPrefix
}

// Redis keeps locks in a single Redis server, of version 5 or newer, or in what speaks like one. A lock frees itself
// when its time is over by that server's clock; a server that comes back without its data has forgotten its locks.
type Redis struct {
	client  *redis.Client
	prefix  string
	compare comparison
	log     *slog.Logger
}

var _ Locker = (*Redis)(nil)

// OpenRedis prepares the backend and connects when it is first used: a Redis that is away must not keep a service from
// starting. The log receives why a lock could not be renewed or released.
func OpenRedis(config RedisConfig, log *slog.Logger) (*Redis, error) {
	options, err := redisOptions(config.URL)
	if err != nil {
		return nil, err
	}
	prefix := config.KeyPrefix
	if prefix == "" {
		prefix = DefaultKeyPrefix
	}
	redis.SetLogger(libraryLog{log}) // for the process: the library would write plain lines to stderr
	return &Redis{client: redis.NewClient(options), prefix: prefix, log: log}, nil
}

// redisOptions does not pass on why a URL cannot be read, because that would show the password.
func redisOptions(url string) (*redis.Options, error) {
	options, err := redis.ParseURL(url)
	if err != nil || strings.Contains(options.Addr, ",") {
		return nil, errors.New("redis.url cannot be read: write redis://user:password@host:6379/0, with one host, since one server keeps the locks")
	}
	for _, timeout := range []*time.Duration{&options.DialTimeout, &options.ReadTimeout, &options.WriteTimeout} {
		if *timeout <= 0 {
			*timeout = redisTimeout
		}
	}
	options.ContextTimeoutEnabled = true
	// Sent again after a lost answer, an acquisition would meet its own lock and call it somebody else's.
	options.MaxRetries, options.DialerRetries = -1, 1
	options.ClientName, options.DisableIdentity = "allocator", true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return options, nil
}

// Name implements Locker.
func (*Redis) Name() string { return BackendRedis }

// Try implements Locker. When the answer to an acquisition is lost, the error says so and the lock may stand until its
// time is over.
func (r *Redis) Try(ctx context.Context, key string, ttl time.Duration) (*Handle, error) {
	if err := checkLock(key, ttl); err != nil {
		return nil, err
	}
	h := &Handle{key: key, token: uuid.NewString(), ttl: ttl}
	err := r.client.Do(ctx, "SET", r.prefix+key, h.token, "NX", "PX", ttl.Milliseconds()).Err()
	switch {
	case err == nil:
		return h, nil
	case errors.Is(err, redis.Nil):
		return nil, nil
	default:
		return nil, broken(ctx, "Redis at "+r.client.Options().Addr+" did not take the lock", err)
	}
}

// Renew implements Locker.
func (r *Redis) Renew(ctx context.Context, h *Handle) error {
	if h == nil {
		return ErrNotOwner
	}
	return r.judge(ctx, h, "renewed", func() (bool, error) {
		return r.compare.extend(ctx, r.client, r.prefix+h.key, h.token, h.ttl)
	})
}

// Release implements Locker.
func (r *Redis) Release(ctx context.Context, h *Handle) error {
	if h == nil {
		return ErrNotOwner
	}
	return r.judge(ctx, h, "released", func() (bool, error) {
		return r.compare.remove(ctx, r.client, r.prefix+h.key, h.token)
	})
}

// judge turns the two ways of not owning a lock into one; people find the outage in the log.
func (r *Redis) judge(ctx context.Context, h *Handle, done string, act func() (bool, error)) error {
	mine, err := act()
	if err != nil {
		r.log.WarnContext(ctx, "Redis did not answer for a lock, so its holder is told that it is lost", "to_be", done, "key", h.key, "error", err)
	}
	if err != nil || !mine {
		return ErrNotOwner
	}
	return nil
}

// Cleanup implements Locker: it closes the connections. Locks that are held stay until their time is over.
func (r *Redis) Cleanup(context.Context) error {
	if err := r.client.Close(); err != nil {
		return fmt.Errorf("close the connections to Redis: %w", err)
	}
	return nil
}

// libraryLog takes what the client library has to say about its connections.
type libraryLog struct{ log *slog.Logger }

// Printf implements the library's logger.
func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, args...))
}
