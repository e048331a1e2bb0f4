package locking

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The two steps for servers that have no commands for them. A script runs alone, so nothing comes between the
// comparison and the act.
var (
	extendScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`)
	removeScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)
)

// comparison compares a token and acts in one step on the server: by SET … IFEQ and DELEX, which Redis has since 8.4,
// or by script. Which of them is found out at the first use. The zero value is ready.
type comparison struct {
	mu    sync.Mutex
	known bool
	byCmd bool // the server has the commands
}

// extend sets the time that is left and tells whether the key still had the token.
func (c *comparison) extend(ctx context.Context, client *redis.Client, key, token string, ttl time.Duration) (bool, error) {
	byCmd, err := c.commands(ctx, client, key)
	if err != nil {
		return false, err
	}
	if byCmd {
		err := client.SetIFEQ(ctx, key, token, token, ttl).Err()
		if !c.disproved(err) {
			return matched(err == nil, err)
		}
	}
	n, err := extendScript.Run(ctx, client, []string{key}, token, ttl.Milliseconds()).Int()
	return matched(n == 1, err)
}

// remove deletes the key and tells whether it still had the token.
func (c *comparison) remove(ctx context.Context, client *redis.Client, key, token string) (bool, error) {
	byCmd, err := c.commands(ctx, client, key)
	if err != nil {
		return false, err
	}
	if byCmd {
		n, err := client.DelExArgs(ctx, key, redis.DelExArgs{Mode: "IFEQ", MatchValue: token}).Result()
		if !c.disproved(err) {
			return matched(n == 1, err)
		}
	}
	n, err := removeScript.Run(ctx, client, []string{key}, token).Int()
	return matched(n == 1, err)
}

// commands finds out whether the server has the commands, once. Asking costs nothing to anybody: the value asked for is
// one that no token ever is.
func (c *comparison) commands(ctx context.Context, client *redis.Client, key string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return c.byCmd, nil
	}
	err := client.DelExArgs(ctx, key, redis.DelExArgs{Mode: "IFEQ", MatchValue: "is DELEX known here?"}).Err()
	if err != nil && !isUnknown(err) {
		return false, err
	}
	c.known, c.byCmd = true, err == nil
	return c.byCmd, nil
}

// disproved tells whether the server has lost the commands that it had, as after a fail-over to an older one.
func (c *comparison) disproved(err error) bool {
	if err == nil || !isUnknown(err) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byCmd = false
	return true
}

// isUnknown recognises a server that does not know a command or an option of it, or forbids it to this user.
func isUnknown(err error) bool {
	return redis.HasErrorPrefix(err, "unknown command") || redis.HasErrorPrefix(err, "syntax error") ||
		redis.HasErrorPrefix(err, "NOPERM")
}

// matched takes "no such key, or another value" for an answer.
func matched(yes bool, err error) (bool, error) {
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return yes && err == nil, err
}
