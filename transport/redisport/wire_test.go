package redisport_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wire speaks the protocol byte by byte.
type wire struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, addr string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return &wire{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// encode writes a command as clients do.
func encode(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.String()
}

// raw sends bytes as they are.
func (c *wire) raw(text string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, text)
	require.NoError(c.t, err)
}

// do sends a command and returns its reply, byte for byte.
func (c *wire) do(words ...string) string {
	c.t.Helper()
	c.raw(encode(words...))
	return c.reply()
}

// want sends a command whose reply is known.
func (c *wire) want(reply string, words ...string) {
	c.t.Helper()
	require.Equal(c.t, reply, c.do(words...), "%q", words)
}

// reply reads one reply with everything in it.
func (c *wire) reply() string {
	c.t.Helper()
	text, err := readReply(c.in)
	require.NoError(c.t, err, "after %q", text)
	return text
}

// ended says that the connection was closed, and returns what came before that.
func (c *wire) ended() string {
	c.t.Helper()
	rest, err := io.ReadAll(c.in)
	if err != nil { // a close with unread input may reset the connection
		require.ErrorContains(c.t, err, "reset")
	}
	return string(rest)
}

// readReply reads a reply of RESP2 or RESP3.
func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil || len(line) < 3 {
		return line, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		body := make([]byte, n+2)
		_, err := io.ReadFull(in, body)
		return line + string(body), err
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for range n {
			part, err := readReply(in)
			line += part
			if err != nil {
				return line, err
			}
		}
	}
	return line, nil
}
