package bench

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"allocator/locking/redistest"
)

// openRedis connects to the given Redis, or to one that it starts. stop ends what it made.
func openRedis(ctx context.Context, url string) (rdb *redis.Client, stop func(), err error) {
	end := func() {}
	if url == "" {
		own, err := redistest.Launch(ctx)
		if err != nil {
			return nil, nil, err
		}
		url, end = own.URL(), own.Stop
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		end()
		return nil, nil, errors.New("the Redis URL cannot be read: write redis://user:password@host:6379/0") // the cause may show a password
	}
	rdb = redis.NewClient(options)
	stop = func() { _ = rdb.Close(); end() }
	if err := rdb.Ping(ctx).Err(); err != nil {
		stop()
		return nil, nil, err
	}
	return rdb, stop, nil
}

// lockLife is how long a key in Redis keeps others from a server; nobody deletes it, so that the one who comes between
// the insert and its commit does not take the server.
const lockLife = 30 * time.Second

// redisLock chooses by SQL, takes a lock on the candidate in Redis, and inserts.
func (w *world) redisLock(rdb *redis.Client) *contender {
	return w.byHand("redis-lock", func(ctx context.Context, o order) (bool, error) {
		return patiently(ctx, func(ctx context.Context) (bool, error) {
			ids, err := w.candidates(ctx, w.pool, o)
			if err != nil {
				return false, err
			}
			for _, id := range ids {
				err := rdb.Do(ctx, "SET", "bench:"+w.lockSpace+id.String(), o.name, "NX", "PX", lockLife.Milliseconds()).Err()
				switch {
				case errors.Is(err, redis.Nil):
					continue
				case err != nil:
					return false, err
				}
				_, err = w.pool.Exec(ctx, holdOneSQL, org, uuid.Must(uuid.NewV7()), id, o.name)
				return err == nil, err
			}
			return false, nil
		})
	})
}
