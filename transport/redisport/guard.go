package redisport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"
)

// guard stands between redcon and a connection. It hands over whole commands of bounded size and no more than a portion
// at a time, so that a reply never waits for more than that; what is no command becomes the protocol error of Redis, in
// its place behind the replies before it. Reads happen on the goroutine of the connection alone.
type guard struct {
	net.Conn

	gate   *gate
	limits *Limits
	frames frames
	chunk  []byte // what was read last
	ready  []byte // whole commands that redcon has not taken yet
	failed error  // why nothing more will be read

	given   int    // commands handed over
	moved   bool   // something was handed over since the network was last asked
	faultAt int    // the number of the one that stands for a fault of frames; 0: there was none
	fault   string // that fault
	known   bool   // AUTH was accepted

	draining atomic.Bool
	closing  sync.Once
	closeErr error
}

// readChunk is what is asked of the network at a time.
const readChunk = 4096

func newGuard(conn net.Conn, g *gate) *guard {
	return &guard{Conn: conn, gate: g, limits: &g.door.limits}
}

// wake ends a wait for the client. Whoever reads next learns that the door ends.
func (g *guard) wake() {
	g.draining.Store(true)
	_ = g.SetReadDeadline(time.Now()) // a connection that is closed needs no waking
}

// Close implements net.Conn. redcon and the door may both call it.
func (g *guard) Close() error {
	g.closing.Do(func() {
		g.closeErr = g.Conn.Close()
		g.gate.left(g)
	})
	return g.closeErr
}

// Write implements net.Conn: a client that takes no replies is let go.
func (g *guard) Write(p []byte) (int, error) {
	if err := g.SetWriteDeadline(time.Now().Add(g.limits.Slow)); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

// Read implements net.Conn. redcon runs it where a panic would end the process.
func (g *guard) Read(p []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			g.gate.door.deps.Log.Error("reading from a client panicked", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			n, err = 0, errors.New("reading from the client failed")
		}
	}()
	for len(g.ready) == 0 {
		if g.failed != nil {
			return 0, g.failed
		}
		if !g.handOver() {
			g.failed = g.fill()
		}
	}
	n = copy(p, g.ready)
	g.ready = g.ready[n:]
	return n, nil
}

// handOver moves whole commands to where redcon takes them, and tells whether there were any. A stranger's commands go
// one at a time, since the answer to AUTH settles how the next is judged.
func (g *guard) handOver() bool {
	if g.faultAt > 0 {
		g.failed = io.EOF // nothing is read behind a fault
		return false
	}
	g.ready = g.ready[:0]
	most := g.limits.Portion
	if !g.known {
		most = 1
	}
	for range most {
		args, fault := g.frames.next(g.limits, !g.known)
		if fault != "" {
			g.faultAt, g.fault, args = g.given+1, fault, [][]byte{[]byte("fault")}
		}
		if args == nil {
			break
		}
		g.given++
		g.ready = redcon.AppendArray(g.ready, len(args))
		for _, arg := range args {
			g.ready = redcon.AppendBulk(g.ready, arg)
		}
		if fault != "" {
			break
		}
	}
	g.moved = g.moved || len(g.ready) > 0
	return len(g.ready) > 0
}

// patience is how long the client may take to send something; zero: the deadline that stands goes on. The rest of a
// command has its time from its first part on. But while commands before it were served nobody read, and that time was
// not the client's: without a new deadline a steady pipeline of slow commands would be cut.
func (g *guard) patience() time.Duration {
	moved := g.moved
	g.moved = false
	switch {
	case g.frames.begun() && moved:
		return g.limits.Slow
	case g.frames.begun():
		return 0
	case !g.known:
		return g.limits.Stranger
	}
	return g.limits.Idle
}

// fill reads what the client sends, within the time that it has.
func (g *guard) fill() error {
	if patience := g.patience(); patience > 0 {
		if err := g.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
	}
	if g.draining.Load() { // asked behind the deadline, which would undo that of wake
		return io.EOF
	}
	if g.chunk == nil {
		g.chunk = make([]byte, readChunk)
	}
	fresh := !g.frames.begun()
	n, err := g.Conn.Read(g.chunk)
	g.frames.add(g.chunk[:n])
	if err != nil {
		return err
	}
	if fresh {
		return g.SetReadDeadline(time.Now().Add(g.limits.Slow))
	}
	return nil
}
