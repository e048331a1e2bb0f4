package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"allocator/locking"
)

// lockTTL is the life of locks that are released at once.
const lockTTL = 30 * time.Second

// releaseScript is how a lock in Redis is let go of by hand: only by the one who has it.
var releaseScript = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

// bareLock takes a lock and lets go of it with the client library alone.
func bareLock(rdb *redisServer) *contender {
	var names string
	return &contender{
		name:    "bare-redis",
		prepare: func(_ context.Context, round string) error { names = round; return nil },
		do: func(ctx context.Context, i int) (bool, error) {
			key := "bench:" + names + strconv.Itoa(i)
			if err := rdb.Do(ctx, "SET", key, names, "NX", "PX", lockTTL.Milliseconds()).Err(); err != nil {
				return false, err
			}
			n, err := releaseScript.Run(ctx, rdb, []string{key}, names).Int()
			return n == 1, err
		},
	}
}

// redisBackend does the same through the product's backend.
func redisBackend(locks *locking.Redis) *contender {
	var names string
	return &contender{
		name:    "lock-redis",
		prepare: func(_ context.Context, round string) error { names = round; return nil },
		do: func(ctx context.Context, i int) (bool, error) {
			handle, err := locks.Try(ctx, names+strconv.Itoa(i), lockTTL)
			if err != nil || handle == nil {
				return false, err
			}
			return true, locks.Release(ctx, handle)
		},
	}
}

// compareLocks compares a cycle of taking and releasing in Redis.
func (r *run) compareLocks(ctx context.Context, w *world, table Table) error {
	if r.redis == nil {
		return nil
	}
	locks, err := locking.OpenRedis(locking.RedisConfig{URL: r.redis.url, KeyPrefix: "bench:product:"}, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("open the backend of locks: %w", err)
	}
	defer func() { _ = locks.Cleanup(context.WithoutCancel(ctx)) }()
	return r.compareAll(ctx, w, table,
		inProcess("bare-redis", func(*world) *contender { return bareLock(r.redis) }),
		inProcess("lock-redis", func(*world) *contender { return redisBackend(locks) }))
}
