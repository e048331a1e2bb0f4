package locking

import (
	"context"
	"crypto/rand"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"allocator/locking/redistest"
)

// watched is a Redis backend whose commands a test reads.
type watched struct {
	*Redis

	proxy  *proxy
	direct *redis.Client // to the same server
	prefix string
}

func watchRedis(t *testing.T, version func([]string) []string) watched {
	t.Helper()
	address, err := url.Parse(redistest.URL(t))
	require.NoError(t, err)
	w := watched{direct: redisClient(t, address.String()), prefix: "test:" + rand.Text() + ":"}
	w.proxy = newRedisProxy(t, address.Host, version)
	address.Host = w.proxy.addr()
	w.Redis = openRedis(t, RedisConfig{URL: address.String(), KeyPrefix: w.prefix})
	return w
}

// An acquisition is the one command SET key value NX PX ttl, its value a fresh UUIDv4; the key frees itself when the time
// is over, although its holder never says so.
//
// Requirements: L07, L14.
func TestRedisAcquires(t *testing.T) {
	t.Parallel()
	w := watchRedis(t, asRedis70)
	h := take(t, w, "key", 90*time.Second)
	require.Equal(t, [][]string{{"SET", w.prefix + "key", h.token, "NX", "PX", "90000"}}, w.proxy.sent())
	id, err := uuid.Parse(h.token)
	require.NoError(t, err)
	require.Equal(t, uuid.Version(4), id.Version())

	require.Equal(t, h.token, w.direct.Get(t.Context(), w.prefix+"key").Val())
	left := w.direct.PTTL(t.Context(), w.prefix+"key").Val()
	require.Positive(t, left)
	require.LessOrEqual(t, left, 90*time.Second)

	requireTaken(t, w, "key")
	require.Equal(t, h.token, w.direct.Get(t.Context(), w.prefix+"key").Val(), "whoever asks in vain changes nothing")

	take(t, w, "short", 20*time.Millisecond) // and its holder dies
	eventually(t, func() bool {
		again, err := w.Try(t.Context(), "short", long)
		return err == nil && again != nil
	}, "it frees itself")
}

// A renewal sets the whole time again, counted from now.
//
// Requirements: L15.
func TestRedisRenewsByTheWholeTime(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]func([]string) []string{"by script": asRedis70, "by command": asRedis84} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watchRedis(t, version)
			h := take(t, w, "key", long)
			require.NoError(t, w.direct.PExpire(t.Context(), w.prefix+"key", time.Minute).Err())
			require.NoError(t, w.Renew(t.Context(), h))
			require.Greater(t, w.direct.PTTL(t.Context(), w.prefix+"key").Val(), long-time.Minute)
			require.Equal(t, h.token, w.direct.Get(t.Context(), w.prefix+"key").Val())
		})
	}
}

// Comparing and acting are one command for the server, in which nobody comes in between: a script where it is an older
// one, SET … IFEQ and DELEX where it has those. Every operation is one round trip.
//
// Requirements: L08, L15, L16, L19.
func TestRedisComparesAndActsInOneStep(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		version       func([]string) []string
		renew, remove func(w watched, h *Handle) []string
	}{
		"by script": {
			asRedis70,
			func(w watched, h *Handle) []string {
				return []string{"evalsha", extendScript.Hash(), "1", w.prefix + "key", h.token, strconv.FormatInt(long.Milliseconds(), 10)}
			},
			func(w watched, h *Handle) []string {
				return []string{"evalsha", removeScript.Hash(), "1", w.prefix + "key", h.token}
			},
		},
		"by command": {
			asRedis84,
			func(w watched, h *Handle) []string {
				return []string{"set", w.prefix + "key", h.token, "ex", strconv.Itoa(int(long.Seconds())), "ifeq", h.token}
			},
			func(w watched, h *Handle) []string { return []string{"delex", w.prefix + "key", "IFEQ", h.token} },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watchRedis(t, tt.version)
			h := take(t, w, "key", long)
			require.NoError(t, w.Renew(t.Context(), h)) // from here on the server is known, and so are the scripts to it
			require.NoError(t, w.Release(t.Context(), h))
			w.proxy.sent()
			for range 3 {
				h := take(t, w, "key", long)
				require.NoError(t, w.Renew(t.Context(), h))
				require.NoError(t, w.Release(t.Context(), h))
				sent := w.proxy.sent()
				require.Len(t, sent, 3)
				require.Equal(t, tt.renew(w, h), sent[1])
				require.Equal(t, tt.remove(w, h), sent[2])
			}
		})
	}
}

// Which of the two ways it is, is found out once and not for every lock.
//
// Requirements: L19.
func TestRedisIsAskedOnceWhatItKnows(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]func([]string) []string{"by script": asRedis70, "by command": asRedis84} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watchRedis(t, version)
			for range 5 {
				h := take(t, w, "key", long)
				require.NoError(t, w.Renew(t.Context(), h))
				require.NoError(t, w.Release(t.Context(), h))
			}
			asked := 0
			for _, command := range w.proxy.sent() {
				if is(command[0], "DELEX") && command[3] != "" && len(command[3]) != 36 {
					asked++
				}
			}
			require.Equal(t, 1, asked)
		})
	}
}

// A fail-over to an older server, or a restart that forgets the scripts, costs a round trip and no lock.
//
// Requirements: L05, L15, L16.
func TestRedisIsAskedAgainAfterItWasReplaced(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	version := asRedis84
	p := newRedisProxy(t, server.Addr(), func(c []string) []string { return version(c) })
	l := openRedis(t, RedisConfig{URL: server.URLAt(p.addr())})
	require.NoError(t, l.Release(t.Context(), take(t, l, "key", long)))

	server.Stop()
	require.NoError(t, server.Start(t.Context()))
	version = asRedis70
	p.lead(server.Addr())
	eventually(t, func() bool {
		h, err := l.Try(t.Context(), "key", long)
		return err == nil && h != nil && l.Renew(t.Context(), h) == nil && l.Release(t.Context(), h) == nil
	}, "it renews and releases by script now")
	require.NotContains(t, p.sent(), []string{"DEL"})
}

// An answer that says nothing about what the server knows decides nothing.
//
// Requirements: L05.
func TestRedisThatIsNotReadyIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := watchRedis(t, func(c []string) []string { return c })
	h := take(t, w, "key", long)
	w.proxy.hole()
	bounded, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.Equal(t, ErrNotOwner, w.Renew(bounded, h))
	require.False(t, w.compare.known)
	w.proxy.heal()
	require.NoError(t, w.Renew(t.Context(), h), "the outage was shorter than the lock")
	require.True(t, w.compare.known)
}

// An acquisition whose answer is lost is not sent again: it would meet its own lock and call it somebody else's. The
// error says that nobody knows, and the lock frees itself when its time is over.
//
// Requirements: L02, L14.
func TestRedisDoesNotTakeItsOwnLockForAnothers(t *testing.T) {
	t.Parallel()
	w := watchRedis(t, asRedis70)
	require.NoError(t, w.Release(t.Context(), take(t, w, "other", long))) // connected
	w.proxy.sent()
	w.proxy.dropNextAnswer()
	h, err := w.Try(t.Context(), "key", long)
	require.Nil(t, h)
	require.ErrorIs(t, err, ErrBackend)
	require.Len(t, w.proxy.sent(), 1)
	require.Equal(t, int64(1), w.direct.Exists(t.Context(), w.prefix+"key").Val(), "it was taken all the same")
}

// Every key has the prefix before it, by default one that says whose it is.
//
// Requirements: L18.
func TestRedisKeysHaveAPrefix(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	direct := redisClient(t, server.URL())
	take(t, openRedis(t, RedisConfig{URL: server.URL()}), "job:audit", long)
	take(t, openRedis(t, RedisConfig{URL: server.URL(), KeyPrefix: "staging/"}), "job:audit", long)
	keys, err := direct.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"allocator:lock:job:audit", "staging/job:audit"}, keys)
}

// One server keeps the locks: a list of them is refused, and so is whatever else cannot be read; no password is shown.
//
// Requirements: L17, L36.
func TestRedisIsOneServer(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"two hosts":            "redis://user:s3cret@a:6379,b:6379",
		"two hosts, one port":  "redis://user:s3cret@a,b:6379",
		"a sentinel's scheme":  "sentinel://user:s3cret@a:26379",
		"none":                 "",
		"a port that is none":  "redis://user:s3cret@a:port",
		"a number that is not": "redis://user:s3cret@a/zero",
	} {
		_, err := OpenRedis(RedisConfig{URL: address}, silent)
		require.ErrorContains(t, err, "redis.url cannot be read", name)
		require.NotContains(t, err.Error(), "s3cret", name)
	}
}

// What is not promised: the lock ends by the server's clock, and a holder that does not look goes on. Only a renewal, or
// a fence on what is written, tells it. Times to live have to be generous, and clocks in step.
//
// Requirements: L20.
func TestRedisDoesNotStopAHolderThatDoesNotLook(t *testing.T) {
	t.Parallel()
	w := watchRedis(t, asRedis70)
	paused := take(t, w, "key", long)
	require.NoError(t, w.direct.Del(t.Context(), w.prefix+"key").Err()) // as if its time had passed meanwhile
	successor := take(t, w, "key", long)

	var writes []string
	writes = append(writes, successor.Key()+" by the successor", paused.Key()+" by the paused one")
	require.Len(t, writes, 2, "nothing kept the second write from happening")
	require.Equal(t, ErrNotOwner, w.Renew(t.Context(), paused), "but it was there to be known")
}

// How many locks a second, beside the same commands without this package. Not a promise.
//
// Requirements: L19.
func BenchmarkRedisLockCycle(b *testing.B) {
	address := redistest.URL(b)
	b.Run("locking", func(b *testing.B) {
		l, err := OpenRedis(RedisConfig{URL: address, KeyPrefix: "bench:"}, silent)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = l.Cleanup(b.Context()) }()
		for b.Loop() {
			h, err := l.Try(b.Context(), "key", long)
			if err != nil || h == nil || l.Release(b.Context(), h) != nil {
				b.Fatal(h, err)
			}
		}
	})
	b.Run("bare go-redis", func(b *testing.B) {
		options, err := redis.ParseURL(address)
		if err != nil {
			b.Fatal(err)
		}
		client := redis.NewClient(options)
		defer func() { _ = client.Close() }()
		for b.Loop() {
			token := uuid.NewString()
			if err := client.Do(b.Context(), "SET", "bench:bare", token, "NX", "PX", long.Milliseconds()).Err(); err != nil {
				b.Fatal(err)
			}
			if err := removeScript.Run(b.Context(), client, []string{"bench:bare"}, token).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
