package bench

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"allocator/locking/redistest"
)

// redisServer is a Redis and a client of it.
type redisServer struct {
	*redis.Client

	url string
	own *redistest.Server // nil: somebody else's
}

// openRedis connects to the given Redis, or to one that it starts.
func openRedis(ctx context.Context, url string) (*redisServer, error) {
	r := &redisServer{url: url}
	if url == "" {
		var err error
		if r.own, err = redistest.Launch(ctx); err != nil {
			return nil, err
		}
		r.url = r.own.URL()
	}
	options, err := redis.ParseURL(r.url)
	if err != nil {
		return nil, errors.New("the Redis URL cannot be read: write redis://user:password@host:6379/0") // the cause may show a password
	}
	r.Client = redis.NewClient(options)
	if err := r.Ping(ctx).Err(); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

func (r *redisServer) stop() {
	_ = r.Close()
	if r.own != nil {
		r.own.Stop()
	}
}

// lockLife is how long a key in Redis keeps others from a server; nobody deletes it, so that the one who comes between
// the insert and its commit does not take the server.
const lockLife = 30 * time.Second

// redisLock chooses by SQL, takes a lock on the candidate in Redis, and inserts.
func (w *world) redisLock(rdb *redisServer) *contender {
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
