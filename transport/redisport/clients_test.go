package redisport_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"allocator/transport/redisport"
)

// go-redis by its typed commands, RESP3 and RESP2.
//
// Requirements: D18.
func TestGoRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, protocol := range []int{3, 2} {
		c := redis.NewClient(&redis.Options{Addr: w.addr, Username: "acme", Password: w.key("acme:orders"), Protocol: protocol, ClientName: "checkout"})
		t.Cleanup(func() { _ = c.Close() })
		ctx := t.Context()
		require.Equal(t, "checkout", c.ClientGetName(ctx).Val())
		require.True(t, c.SetNX(ctx, "lock:k", "tok", 30*time.Second).Val())
		require.False(t, c.SetNX(ctx, "lock:k", "other", 30*time.Second).Val())
		require.Equal(t, "tok", c.Get(ctx, "lock:k").Val())
		require.ErrorIs(t, c.Get(ctx, "lock:none").Err(), redis.Nil)
		require.InDelta(t, 30*time.Second, c.PTTL(ctx, "lock:k").Val(), float64(patience))
		require.Equal(t, time.Duration(-2), c.PTTL(ctx, "lock:none").Val())
		require.True(t, c.PExpire(ctx, "lock:k", time.Minute).Val())
		require.Equal(t, "OK", c.SetIFEQ(ctx, "lock:k", "tok", "tok", time.Hour).Val())
		require.ErrorIs(t, c.SetIFEQ(ctx, "lock:k", "x", "wrong", time.Hour).Err(), redis.Nil)
		require.Equal(t, int64(1), c.Exists(ctx, "lock:k").Val())
		require.Equal(t, "string", c.Type(ctx, "lock:k").Val())
		digest := c.Digest(ctx, "lock:k").Val()
		require.Equal(t, int64(0), c.DelExArgs(ctx, "lock:k", redis.DelExArgs{Mode: "IFEQ", MatchValue: "wrong"}).Val())
		require.Equal(t, int64(1), c.DelExArgs(ctx, "lock:k", redis.DelExArgs{Mode: "IFDEQ", MatchDigest: digest}).Val())
		require.ErrorContains(t, c.Del(ctx, "lock:k").Err(), "NOPERM")
		require.ErrorContains(t, c.Eval(ctx, "return 1", []string{"lock:k"}, "tok").Err(), "send DELEX key IFEQ token")
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 100 {
				p.Ping(ctx)
			}
			return nil
		})
		require.NoError(t, err)
	}
}

// redis-cli by the commands that people type.
//
// Requirements: D18, D19.
func TestRedisCLI(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("skipped: there is no redis-cli: run tools/setup.sh test")
	}
	w := newWorld(t)
	host, port, err := net.SplitHostPort(w.addr)
	require.NoError(t, err)
	cli := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"-h", host, "-p", port, "--no-raw"}, args...)...)
		cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+w.key("acme:orders"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	for _, protocol := range []string{"-2", "-3"} {
		require.Equal(t, "OK", cli(protocol, "SET", "lock:k", "tok", "NX", "PX", "30000"))
		require.Equal(t, "(nil)", cli(protocol, "SET", "lock:k", "other", "NX", "PX", "30000"))
		require.Equal(t, `"tok"`, cli(protocol, "GET", "lock:k"))
		require.Regexp(t, `^\(integer\) [123]\d?\d{3}$`, cli(protocol, "PTTL", "lock:k"))
		require.Equal(t, "(integer) 0", cli(protocol, "DELEX", "lock:k", "IFEQ", "wrong"))
		require.Equal(t, "(integer) 1", cli(protocol, "DELEX", "lock:k", "IFEQ", "tok"))
		require.Equal(t, "(error) ERR wrong number of arguments for 'get' command", cli(protocol, "GET"))
	}
	interactive := exec.CommandContext(t.Context(), program, "-h", host, "-p", port, "--no-raw")
	interactive.Env = append(os.Environ(), "REDISCLI_AUTH="+w.key("acme:orders"))
	interactive.Stdin = strings.NewReader("PING\nSET lock:k \"a b\" NX EX 30\nGET lock:k\nINFO server\n")
	out, err := interactive.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "PONG\nOK\n\"a b\"\n")
	require.Contains(t, string(out), "server_name:allocator")
}

// pyScript uses redis-py as its users do; what it does not know yet is sent as it is.
const pyScript = `
import sys, redis
for protocol in (2, 3) if redis.VERSION >= (5,) else (2,):
    more = {'protocol': protocol} if redis.VERSION >= (5,) else {}
    r = redis.Redis(host=sys.argv[1], port=int(sys.argv[2]), password=sys.argv[3], decode_responses=True, **more)
    assert r.ping()
    assert r.set('lock:py', 'tok', nx=True, px=30000) is True
    assert r.set('lock:py', 'other', nx=True, ex=30) is None
    assert r.get('lock:py') == 'tok'
    assert 0 < r.pttl('lock:py') <= 30000
    assert r.pttl('lock:none') == -2
    assert r.exists('lock:py') == 1
    assert r.type('lock:py') == 'string'
    assert r.pexpire('lock:py', 60000)
    assert r.execute_command('SET', 'lock:py', 'tok', 'IFEQ', 'tok', 'PX', 60000) in (True, 'OK')
    assert r.execute_command('DELEX', 'lock:py', 'IFEQ', 'wrong') == 0
    assert r.execute_command('DELEX', 'lock:py', 'IFEQ', 'tok') == 1
    assert r.get('lock:py') is None
    assert r.info()['server_name'] == 'allocator'
    lock = r.lock('lock:py', timeout=30)
    assert lock.acquire(blocking=False, token='mine')
    try:
        lock.release()
        raise SystemExit('a script was run')
    except redis.exceptions.ResponseError as e:
        assert 'DELEX key IFEQ token' in str(e), e
    try:
        redis.Redis(host=sys.argv[1], port=int(sys.argv[2]), password='wrong').ping()
        raise SystemExit('a wrong key was accepted')
    except redis.exceptions.RedisError as e:
        assert 'WRONGPASS' in str(e), e
    assert r.execute_command('DELIFEQ', 'lock:py', 'mine') == 1
print('all is well')
`

// redis-py of Debian by its plain methods.
//
// Requirements: D18.
func TestRedisPy(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // Debian's package is Debian's Python's
	if exec.CommandContext(t.Context(), python, "-c", "import redis").Run() != nil {
		t.Skip("skipped: there is no python3-redis: run tools/setup.sh test")
	}
	w := newWorld(t)
	host, port, err := net.SplitHostPort(w.addr)
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), python, "-c", pyScript, host, port, w.key("acme:orders")).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "all is well\n", string(out))
}

// With a certificate the door speaks TLS, and nothing in the clear.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	w := newWorld(t)
	listener, secure, err := redisport.Listen(t.Context(), redisport.Place{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key})
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	addr, _ := w.serve(redisport.New(w.deps, redisport.Limits{}, secure))

	roots := x509.NewCertPool()
	pemText, err := os.ReadFile(cert)
	require.NoError(t, err)
	require.True(t, roots.AppendCertsFromPEM(pemText))
	c := redis.NewClient(&redis.Options{Addr: addr, Password: w.key("acme:orders"), TLSConfig: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}})
	t.Cleanup(func() { _ = c.Close() })
	require.True(t, c.SetNX(t.Context(), "lock:k", "tok", time.Minute).Val())

	plain := dial(t, addr)
	plain.raw(encode("AUTH", w.key("acme:orders")))
	require.NotContains(t, plain.ended(), "+OK")
}

// Where the door may stand.
func TestPlaces(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	for name, tt := range map[string]struct {
		place   redisport.Place
		refused string
	}{
		"this machine":            {redisport.Place{Address: "127.0.0.1:0"}, ""},
		"this machine by name":    {redisport.Place{Address: "localhost:0"}, ""},
		"every interface":         {redisport.Place{Address: ":0"}, "keys and tokens travel in the clear"},
		"every interface, IPv4":   {redisport.Place{Address: "0.0.0.0:0"}, "keys and tokens travel in the clear"},
		"every interface, said":   {redisport.Place{Address: ":0", Plain: true}, ""},
		"every interface, by TLS": {redisport.Place{Address: ":0", CertFile: cert, KeyFile: key}, ""},
		"half of TLS":             {redisport.Place{Address: ":0", CertFile: cert}, "takes both"},
		"no certificate":          {redisport.Place{Address: ":0", CertFile: key, KeyFile: cert}, "the certificate of the Redis door cannot be used"},
		"no address":              {redisport.Place{Address: "6379"}, "write host:port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, _, err := redisport.Listen(t.Context(), tt.place)
			if tt.refused != "" {
				require.ErrorContains(t, err, tt.refused)
				return
			}
			require.NoError(t, err)
			_, _, err = redisport.Listen(t.Context(), redisport.Place{Address: listener.Addr().String(), Plain: true})
			require.ErrorContains(t, err, "another program listens")
			require.NoError(t, listener.Close())
		})
	}
}

// certificate writes a certificate for 127.0.0.1 and its key, and returns the files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	der, private := selfSigned(t)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return cert, key
}
