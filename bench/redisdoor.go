package bench

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"allocator/events"
	"allocator/identity"
	"allocator/locking"
	"allocator/store/postgres"
	"allocator/transport/redisport"
)

// lockKeys is how many keys of locks are taken and released over and over.
const lockKeys = 2000

// What a lock in the product's own table costs at least.
const (
	takeLockSQL = `INSERT INTO locks (organization_id, key, token, fence, expires_at)
		VALUES ($1, $2, $3, nextval('lock_fences'), clock_timestamp() + interval '30 seconds')
		ON CONFLICT (organization_id, key) DO UPDATE SET token = excluded.token, fence = excluded.fence, expires_at = excluded.expires_at
		WHERE locks.expires_at <= clock_timestamp()`
	freeLockSQL = `UPDATE locks SET token = '', expires_at = '-infinity' WHERE organization_id = $1 AND key = $2 AND token = $3`
)

// sqlLock takes a lock and lets go of it with those two statements.
func (w *world) sqlLock() *contender {
	return &contender{
		name:    "sql-lock",
		prepare: func(context.Context, string) error { return nil },
		do: func(ctx context.Context, i int) (bool, error) {
			key, token := "sql-"+strconv.Itoa(i%lockKeys), []byte(strconv.Itoa(i))
			for _, sql := range []string{takeLockSQL, freeLockSQL} {
				tag, err := w.pool.Exec(ctx, sql, org, key, token)
				if err != nil || tag.RowsAffected() == 0 {
					return false, err
				}
			}
			return true, nil
		},
	}
}

// redisDoor is the door for clients of Redis on loopback, in this process, with a client to it.
type redisDoor struct {
	client *redis.Client
	end    context.CancelFunc
	ended  chan error
}

func openRedisDoor(ctx context.Context, w *world, callers int) (*redisDoor, error) {
	keys := identity.NewKeys(postgres.NewKeys(w.pool), time.Now)
	_, text, err := keys.Create(ctx, w.caller, identity.NewKey{Name: "bench", Scopes: []identity.Scope{identity.ScopeOrders}})
	if err != nil {
		return nil, err
	}
	door := redisport.New(redisport.Deps{
		Authenticator: keys, Attempts: events.NewAudit(postgres.NewAudit(w.pool), time.Now),
		Locks: locking.NewKeyspace(postgres.NewLocks(w.pool)), Countdowns: postgres.NewReservations(w.pool), Reservations: w.reservations,
		Log: slog.New(slog.DiscardHandler), Version: "bench",
	}, redisport.Limits{}, nil)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	d := &redisDoor{end: end, ended: make(chan error, 1)}
	d.client = redis.NewClient(&redis.Options{Addr: listener.Addr().String(), Password: text, PoolSize: callers, DisableIdentity: true})
	go func() { d.ended <- door.Serve(serving, listener) }()
	return d, nil
}

func (d *redisDoor) close() error {
	err := d.client.Close()
	d.end()
	return errors.Join(err, <-d.ended)
}

// lock takes a lock and lets go of it as a client of Redis does.
func (d *redisDoor) lock() *contender {
	return &contender{
		name:    "redis-door",
		prepare: func(context.Context, string) error { return nil },
		do: func(ctx context.Context, i int) (bool, error) {
			key, token := "lock:door-"+strconv.Itoa(i%lockKeys), strconv.Itoa(i)
			got, err := d.client.SetNX(ctx, key, token, lockTTL).Result()
			if err != nil || !got {
				return false, err
			}
			n, err := d.client.DelExArgs(ctx, key, redis.DelExArgs{Mode: "IFEQ", MatchValue: token}).Result()
			return n == 1, err
		},
	}
}

// compareRedisDoor compares locks through the door with plain SQL.
func (r *run) compareRedisDoor(ctx context.Context, w *world, table Table) error {
	d, err := openRedisDoor(ctx, w, table.Callers)
	if err != nil {
		return err
	}
	return errors.Join(r.compareAll(ctx, w, table,
		inProcess("sql-lock", (*world).sqlLock),
		inProcess("redis-door", func(*world) *contender { return d.lock() })), d.close())
}
