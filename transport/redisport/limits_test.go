package redisport_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/locking"
	"allocator/transport/redisport"
)

// Connections are bounded, in the words of Redis, and one that ends makes room.
func TestMostConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withLimits(redisport.Limits{Connections: 2}))
	first, second := w.client("acme:orders"), w.client("acme:orders")
	require.Equal(t, "-ERR max number of clients reached\r\n", dial(t, w.addr).ended())
	first.want("+PONG\r\n", "PING")
	second.want("+OK\r\n", "QUIT")
	require.Empty(t, second.ended())
	require.Eventually(t, func() bool {
		c := dial(t, w.addr)
		c.raw(encode("AUTH", w.key("acme:orders")))
		text, err := readReply(c.in)
		return err == nil && text == "+OK\r\n"
	}, patience, 5*time.Millisecond)
}

// A pipeline of any depth is answered in order, in portions; nothing of it is lost.
func TestDeepPipeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withLimits(redisport.Limits{Portion: 3}))
	c := w.client("acme:orders")
	const depth = 2000
	var sent strings.Builder
	for i := range depth {
		sent.WriteString(encode("ECHO", fmt.Sprint(i)))
	}
	go func() { _, _ = io.WriteString(c.conn, sent.String()) }()
	for i := range depth {
		require.Equal(t, fmt.Sprintf("$%d\r\n%d\r\n", len(fmt.Sprint(i)), i), c.reply())
	}
}

// Replies to a pipeline do not pile up: they are sent as they become many.
func TestLargeRepliesOfAPipeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:orders")
	large := strings.Repeat("x", locking.MaxTokenBytes)
	c.want("+OK\r\n", "SET", "lock:k", large, "PX", "600000")
	c.raw(strings.Repeat(encode("GET", "lock:k"), 64))
	for range 64 {
		require.Len(t, c.reply(), len(large)+len("$65536\r\n\r\n"))
	}
	require.Contains(t, c.do("SET", "lock:k", large+"x", "PX", "1000"), "-ERR the value of a lock is its token, which must have at most 65536 bytes")
	c.want("+PONG\r\n", "PING")
}

// What is too large is the protocol error of Redis, behind the answers before it, and the end of the connection.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withLimits(redisport.Limits{Argument: 1000, Arguments: 5, Command: 1500}))
	for sent, fault := range map[string]string{
		"*2\r\n$4\r\nECHO\r\n$1001\r\n": "invalid bulk length",
		"*6\r\n":                        "invalid multibulk length",
		"*3\r\n$6\r\nEXISTS\r\n$800\r\n" + strings.Repeat("x", 800) + "\r\n$800\r\n": "invalid bulk length",
		"*2\r\n$4\r\nECHO\r\n$9223372036854775807\r\n":                               "invalid bulk length",
		"*2\r\n$4\r\nECHO\r\n$-9223372036854775808\r\n":                              "invalid bulk length",
		"*9223372036854775807\r\n":                                                   "invalid multibulk length",
	} {
		c := w.client("acme:orders")
		c.raw(encode("ECHO", strings.Repeat("y", 1000)) + sent)
		require.Contains(t, c.reply(), "$1000\r\n")
		require.Equal(t, "-ERR Protocol error: "+fault+"\r\n", c.ended(), "%.60q", sent)
	}
}

// Whoever says nothing is let go: strangers soon, others later, and those who stop in the middle of a command.
func TestSilence(t *testing.T) {
	t.Parallel()
	const long, short = time.Hour, 50 * time.Millisecond
	for name, tt := range map[string]struct {
		limits redisport.Limits
		say    func(c *wire, key string)
	}{
		"a stranger":              {redisport.Limits{Stranger: short, Idle: long}, func(*wire, string) {}},
		"one who has nothing":     {redisport.Limits{Stranger: long, Idle: short}, func(c *wire, key string) { c.raw(encode("AUTH", key)) }},
		"in the middle":           {redisport.Limits{Stranger: long, Idle: long, Slow: short}, func(c *wire, _ string) { c.raw("*2\r\n$4\r\nEC") }},
		"in the middle of a line": {redisport.Limits{Stranger: long, Idle: long, Slow: short}, func(c *wire, _ string) { c.raw("PIN") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withLimits(tt.limits))
			key := w.key("acme:orders")
			c := dial(t, w.addr)
			tt.say(c, key)
			require.NotContains(t, c.ended(), "-") // it ends within the test's patience, without a word
		})
	}
}

// slow is a store in which every look takes its time.
type slow struct {
	redisport.Locks

	takes time.Duration
}

func (s slow) Look(context.Context, string, string) (*locking.Entry, error) {
	time.Sleep(s.takes) //nolint:forbidigo // nothing is waited for: this is the work that takes time
	return nil, nil
}

// A pipeline whose work takes longer than a client has for the rest of one command is answered to its end: the part that
// waits behind the work is not held against the client. One that sends the rest of a command too late is still let go.
func TestSlowPipelineIsNotCut(t *testing.T) {
	t.Parallel()
	const depth, cost, rest = 1000, 5 * time.Millisecond, time.Second // the work takes five times what the rest may
	w := newWorld(t, withLimits(redisport.Limits{Slow: rest, Idle: time.Hour}), withDeps(func(d *redisport.Deps) { d.Locks = slow{d.Locks, cost} }))
	c := w.client("acme:orders")
	c.raw(strings.Repeat(encode("GET", "lock:k"), depth))
	for i := range depth {
		require.Equal(t, "$-1\r\n", c.reply(), "reply %d", i)
	}
	c.raw(encode("GET", "lock:k") + "*2\r\n$3\r\nGE")
	require.Equal(t, "$-1\r\n", c.ended(), "nobody waits for the rest for ever")
}

// panicking is a store whose look at one key is a fault of the program.
type panicking struct {
	redisport.Locks

	entered chan struct{}
	let     chan struct{}
}

func (p panicking) Look(ctx context.Context, org, key string) (*locking.Entry, error) {
	switch key {
	case "panic":
		panic("secret of the program")
	case "slow":
		p.entered <- struct{}{}
		<-p.let
	}
	return p.Locks.Look(ctx, org, key)
}

// A panic ends its own connection, says nothing of the program, and leaves the others alone.
func TestPanicEndsOneConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withDeps(func(d *redisport.Deps) { d.Locks = panicking{Locks: d.Locks} }))
	victim, other := w.client("acme:orders"), w.client("acme:orders")
	victim.raw(encode("PING") + encode("GET", "lock:panic") + encode("PING"))
	require.Equal(t, "+PONG\r\n-ERR the service failed at this command: its log says why\r\n", victim.ended())
	other.want("+PONG\r\n", "PING")
	require.Contains(t, w.log.String(), "secret of the program")
	require.Contains(t, w.log.String(), "limits_test.go", "the stack")
}

// When the service ends, the command under way is answered, those behind it are not begun, and waiting clients are let go.
func TestEndFinishesCommands(t *testing.T) {
	t.Parallel()
	p := panicking{entered: make(chan struct{}), let: make(chan struct{})}
	w := newWorld(t, withDeps(func(d *redisport.Deps) { p.Locks = d.Locks; d.Locks = p }))
	working, waiting := w.client("acme:orders"), w.client("acme:orders")
	working.raw(encode("GET", "lock:slow"))
	<-p.entered
	ended := make(chan struct{})
	go func() { w.stop(); close(ended) }()
	require.Empty(t, waiting.ended())
	select {
	case <-ended:
		t.Fatal("it did not wait for the command")
	default:
	}
	working.raw(encode("PING"))
	close(p.let)
	require.Equal(t, "$-1\r\n", working.ended())
	<-ended
}

// A key that is revoked, or is none, opens nothing; that is found out with the next command, without a new AUTH.
func TestRevokedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:orders")
	c.want("+PONG\r\n", "PING")
	list, err := w.keys.List(t.Context(), system("acme"), "", 10)
	require.NoError(t, err)
	_, err = w.keys.Revoke(t.Context(), system("acme"), list[0].ID)
	require.NoError(t, err)
	c.want("-NOAUTH Authentication required.\r\n", "PING")
	c.want("-WRONGPASS invalid username-password pair or user is disabled.\r\n", "AUTH", w.key("acme:orders"))
	require.Equal(t, 2, read[int](w, `SELECT count(*) FROM audit WHERE organization_id = 'acme' AND detail->>'reason' = 'revoked'`))

	other := w.key("acme:operator")
	c.want("-WRONGPASS invalid username-password pair or user is disabled.\r\n", "AUTH", "rival", other)
	c.want("-WRONGPASS invalid username-password pair or user is disabled.\r\n", "HELLO", "3", "AUTH", "default", other[:len(other)-1]+"x")
	c.want("+OK\r\n", "AUTH", "acme", other)
	c.want("+OK\r\n", "AUTH", "default", other)
	require.Contains(t, dial(t, w.addr).do("HELLO", "3", "AUTH", "default", other), "%7\r\n")
}
