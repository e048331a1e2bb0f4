package redisport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/google/uuid"
	"github.com/tidwall/redcon"

	"allocator/identity"
)

// session is what the door knows of one connection. It belongs to the goroutine of the connection.
type session struct {
	guard   *guard
	id      int64
	resp3   bool
	name    string
	key     string // given by AUTH; looked at again with every command, since keys are revoked
	caller  identity.Caller
	handled int // commands so far
	unsent  int // bytes of replies that redcon has not sent yet
	over    bool
}

func (d *Door) newSession(g *guard) *session { return &session{guard: g, id: d.lastID.Add(1)} }

// flushAt bounds the replies that are gathered for one writing.
const flushAt = 64 << 10

// call is one command on its way through.
type call struct {
	reply

	door    *Door
	session *session
	ctx     context.Context //nolint:containedctx // a call is the handling of one command and ends with it
	cmd     *command
	args    [][]byte // behind the name
	quit    bool     // the connection is closed behind the reply
}

// serve answers one command. redcon calls it on the goroutine of the connection.
func (d *Door) serve(conn redcon.Conn, cmd redcon.Command) {
	s, ours := conn.Context().(*session)
	if !ours || s.over {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.limits.Work)
	defer cancel()
	c := &call{door: d, session: s, ctx: ctx, reply: reply{resp3: s.resp3}}
	s.handled++
	if s.handled == s.guard.faultAt {
		c.err("ERR Protocol error: " + s.guard.fault)
		c.quit = true
	} else {
		c.run(cmd.Args)
	}
	conn.WriteRaw(c.b)
	s.sendSome(conn, len(c.b))
	if c.quit {
		s.over = true
		_ = conn.Close() // what was written is sent first
	}
}

// sendSome sends the replies to a long pipeline before redcon would, which does so at its end.
func (s *session) sendSome(conn redcon.Conn, n int) {
	if s.unsent += n; len(conn.PeekPipeline()) == 0 {
		s.unsent = 0
	}
	if w := redcon.BaseWriter(conn); s.unsent > flushAt && w != nil {
		s.unsent = 0
		_ = w.Flush() // it keeps its error, and redcon meets it again
	}
}

// run finds the command, judges who may give it, and runs it. A panic ends the command and nothing else.
func (c *call) run(words [][]byte) {
	defer func() {
		if r := recover(); r != nil {
			c.door.deps.Log.Error("a command panicked", "command", c.commandName(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			c.b = nil
			c.err("ERR the service failed at this command: its log says why")
			c.quit = true
		}
	}()
	// 1. Is it one, with as many arguments as it takes? Redis says so to strangers as well.
	name := strings.ToLower(string(words[0]))
	c.args = words[1:]
	c.cmd = commands[name]
	if c.cmd == nil {
		c.unknown(string(words[0]))
		return
	}
	if !c.cmd.takes(len(words)) {
		c.wrongArity(name)
		return
	}
	// 2. Who asks?
	if !c.cmd.open && !c.authenticated() {
		return
	}
	// 3. Do it.
	c.cmd.run(c)
}

func (c *call) commandName() string {
	if c.cmd == nil {
		return ""
	}
	return c.cmd.name
}

// authenticated looks at the key again: it may have been revoked, or have expired, since the last command.
func (c *call) authenticated() bool {
	if c.session.key == "" {
		c.err("NOAUTH Authentication required.")
		return false
	}
	caller, err := c.door.deps.Authenticator.Authenticate(c.ctx, c.session.key)
	switch {
	case errors.Is(err, identity.ErrUnauthenticated):
		c.refusedKey(err)
		c.session.key, c.session.guard.known = "", false
		c.err("NOAUTH Authentication required.")
		return false
	case err != nil:
		c.fail(err)
		return false
	}
	c.session.caller = caller
	return true
}

// caller is who gave this command, with an id that leads from the audit trail to the log.
func (c *call) caller() identity.Caller {
	caller := c.session.caller
	caller.RequestID = uuid.NewString()
	return caller
}

func (c *call) org() string { return string(c.session.caller.Organization) }

// log is the log of this command. Arguments never stand in it: they are tokens.
func (c *call) log() *slog.Logger {
	return c.door.deps.Log.With("command", c.commandName(), "client", c.session.id, "remote", c.session.guard.RemoteAddr().String())
}
