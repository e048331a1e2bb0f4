package redisport_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/locking"
)

// A key that no lock can have is an error that says why, never nil or 0, which would be taken for a lock that is free.
// The connection goes on, and nothing is written.
//
// Requirements: D01.
func TestKeysThatNoLockCanHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:operator")
	const control = "-ERR the key of a lock must not contain control characters or line breaks\r\n"
	for name, tt := range map[string]struct{ key, reply string }{
		"no name":           {"", "-ERR the key of a lock must have 1 to 255 bytes, and this one has 0\r\n"},
		"256 bytes":         {strings.Repeat("k", locking.MaxKeyBytes+1), "-ERR the key of a lock must have 1 to 255 bytes, and this one has 256\r\n"},
		"a line break":      {"a\nb", control},
		"NUL":               {"a\x00b", control},
		"what is not UTF-8": {"a\xffb", "-ERR the key of a lock must be valid UTF-8\r\n"},
	} {
		key := "lock:" + tt.key
		for _, words := range [][]string{
			{"SET", key, "tok", "NX", "PX", "1000"}, {"GET", key}, {"EXISTS", "lock:fine", key}, {"PEXPIRE", key, "1000"}, {"DELEX", key, "IFEQ", "tok"},
		} {
			require.Equal(t, tt.reply, c.do(words...), "%s: %s", name, words[0])
		}
	}
	c.want("+PONG\r\n", "PING")
	require.Zero(t, read[int64](w, `SELECT count(*) FROM locks`))

	longest := "lock:" + strings.Repeat("k", locking.MaxKeyBytes)
	c.want("+OK\r\n", "SET", longest, "tok", "NX", "PX", "600000")
	c.want("$3\r\ntok\r\n", "GET", longest)
	c.want(":1\r\n", "EXISTS", longest)
	c.want(":1\r\n", "PEXPIRE", longest, "500000")
	c.want(":1\r\n", "DELEX", longest, "IFEQ", "tok")
}
