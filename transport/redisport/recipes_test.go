package redisport_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"allocator/locking"
	"allocator/store/postgres"
)

func grantsOf(w *world) *locking.Grants { return locking.NewGrants(postgres.NewLocks(w.pool)) }

// goRedis is an ordinary client, as its users make it.
func (w *world) goRedis(who string) *redis.Client {
	w.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: w.addr, Password: w.key(who)})
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// The same cron job on every instance: one of them does the work of a night.
//
// Requirements: D15.
func TestRecipeCronRunsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 10 {
		night := "lock:cron:" + uuid.NewString()
		var ran atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			c := w.goRedis("acme:orders")
			all.Go(func() {
				got, err := c.SetNX(t.Context(), night, uuid.NewString(), time.Minute).Result()
				if err != nil {
					t.Error(err)
				}
				if got {
					ran.Add(1)
				}
			})
		}
		all.Wait()
		require.Equal(t, int64(1), ran.Load())
	}
}

// Capture and refund of one order take the same lock, and are never at it together. Each has a random token of its own, and
// each releases what is its own: one command to take, one to release, and no script.
//
// Requirements: D04, D11, D16.
func TestRecipeCaptureAndRefundNeverOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var inside, done atomic.Int64
	work := func(c *redis.Client) {
		token := uuid.NewString()
		for {
			got, err := c.SetNX(t.Context(), "lock:order:A-1", token, time.Minute).Result()
			if err != nil {
				t.Error(err)
				return
			}
			if got {
				break
			}
		}
		if inside.Add(1) != 1 {
			t.Error("two were at the order together")
		}
		done.Add(1)
		inside.Add(-1)
		n, err := c.DelExArgs(t.Context(), "lock:order:A-1", redis.DelExArgs{Mode: "IFEQ", MatchValue: token}).Result()
		if err != nil || n != 1 {
			t.Errorf("the lock was lost: %d, %v", n, err)
		}
	}
	var all sync.WaitGroup
	for range 6 { // captures and refunds
		c := w.goRedis("acme:orders")
		all.Go(func() {
			for range 10 {
				work(c)
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(60), done.Load())
}

// Cache stampede: a price list has become old, one rebuilds it, and the others serve the old one meanwhile.
//
// Requirements: D17.
func TestRecipeStampede(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var price atomic.Int64 // what is served
	price.Store(1)
	var rebuilt, servedOld atomic.Int64
	others := make(chan struct{})
	var asked sync.WaitGroup
	asked.Add(7)
	go func() { asked.Wait(); close(others) }()

	var all sync.WaitGroup
	for range 8 {
		c := w.goRedis("acme:checkout")
		all.Go(func() {
			token := uuid.NewString()
			got, err := c.SetNX(t.Context(), "lock:cache:prices", token, time.Minute).Result()
			if err != nil {
				t.Error(err)
			}
			if !got {
				servedOld.Add(price.Load())
				asked.Done()
				return
			}
			<-others // it takes long
			rebuilt.Add(1)
			price.Store(2)
			if n := c.DelExArgs(t.Context(), "lock:cache:prices", redis.DelExArgs{Mode: "IFEQ", MatchValue: token}).Val(); n != 1 {
				t.Error("the lock was lost")
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(1), rebuilt.Load())
	require.Equal(t, int64(7), servedOld.Load())
	require.Equal(t, int64(2), price.Load())
}
