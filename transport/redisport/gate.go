package redisport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// gate is the listener that redcon sees. It lets in as many connections as there may be, puts a guard before each, and
// when the door is to end it stays until the last connection is through.
type gate struct {
	net.Listener

	door *Door
	ctx  context.Context //nolint:containedctx // redcon's Accept has none
	end  context.CancelFunc

	mu    sync.Mutex
	conns map[*guard]struct{}
	empty chan struct{} // closed when the door ends and no connection is left
	err   error
}

func (d *Door) newGate(ctx context.Context, listener net.Listener) *gate {
	ctx, end := context.WithCancel(ctx)
	g := &gate{Listener: listener, door: d, ctx: ctx, end: end, conns: map[*guard]struct{}{}, empty: make(chan struct{})}
	context.AfterFunc(ctx, func() { _ = listener.Close() }) // Accept returns
	return g
}

func (g *gate) close() { g.end() }

// failed is why the door ended, if that was not wanted.
func (g *gate) failed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Accept implements net.Listener. Its end is what ends redcon, which then closes all connections that are left.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		switch {
		case g.ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			g.drain()
			return nil, net.ErrClosed
		case errors.Is(err, net.ErrClosed):
			g.mu.Lock()
			g.err = err
			g.mu.Unlock()
			return nil, err
		case err != nil: // too many open files, perhaps
			g.door.deps.Log.Warn("the Redis door could not take a connection", "error", err)
			g.pause()
			continue
		}
		if guarded := g.admit(conn); guarded != nil {
			return guarded, nil
		}
	}
}

// pause keeps a failing Accept from being called without end.
func (g *gate) pause() {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-g.ctx.Done():
	}
}

// admit puts a guard before the connection, or turns it away as Redis does.
func (g *gate) admit(conn net.Conn) *guard {
	g.mu.Lock()
	full := len(g.conns) >= g.door.limits.Connections
	guarded := newGuard(conn, g)
	if !full {
		g.conns[guarded] = struct{}{}
	}
	g.mu.Unlock()
	if full {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		if g.door.tls == nil { // with TLS there is nobody to read it yet
			_, _ = conn.Write([]byte("-ERR max number of clients reached\r\n"))
		}
		_ = conn.Close()
		return nil
	}
	if g.door.tls != nil {
		guarded.Conn = tls.Server(conn, g.door.tls)
	}
	g.door.connected.Add(1)
	return guarded
}

// left is called by a guard when its connection is closed.
func (g *gate) left(guarded *guard) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, there := g.conns[guarded]; !there {
		return
	}
	delete(g.conns, guarded)
	g.door.connected.Add(-1)
	if g.ctx.Err() != nil && len(g.conns) == 0 {
		g.signalEmpty()
	}
}

func (g *gate) signalEmpty() {
	select {
	case <-g.empty:
	default:
		close(g.empty)
	}
}

// drain wakes every connection that waits for its client, and waits for those that work on a command.
func (g *gate) drain() {
	g.mu.Lock()
	for guarded := range g.conns {
		guarded.wake()
	}
	if len(g.conns) == 0 {
		g.signalEmpty()
	}
	g.mu.Unlock()
	select {
	case <-g.empty:
	case <-time.After(drainTime):
		g.door.deps.Log.Warn("commands of the Redis door are cut off, since they do not end")
	}
}
