package locking

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a client and a server, and can be a bad network: a black hole, in which nothing arrives and
// nothing is refused, or a cut cable.
type proxy struct {
	t        *testing.T
	listener net.Listener
	rewrite  func([]string) []string // Redis only: what the server gets of a command
	answer   func([]byte) []byte     // what the client gets of an answer; nil cuts the connection instead

	mu       sync.Mutex
	target   string
	open     chan struct{} // closed while bytes pass
	conns    []net.Conn
	commands [][]string // Redis only, as the client sent them
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{t: t, listener: listener, target: target, open: make(chan struct{})}
	close(p.open)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.heal()
		p.cut()
		all.Wait()
	})
	return p
}

// newRedisProxy is a proxy that reads the commands and may change them.
func newRedisProxy(t *testing.T, target string, rewrite func([]string) []string) *proxy {
	t.Helper()
	p := newProxy(t, target)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rewrite = rewrite
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) serve(client net.Conn) {
	p.mu.Lock()
	target, rewrite := p.target, p.rewrite
	p.conns = append(p.conns, client)
	p.mu.Unlock()
	<-p.passing() // a connection begun in the hole is not even made to the server
	server, err := net.Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, server)
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.copy(client, server, p.changed) })
	both.Go(func() {
		if rewrite != nil {
			p.translate(server, bufio.NewReader(client), rewrite)
		} else {
			p.copy(server, client, nil)
		}
	})
	both.Wait()
}

// copy passes bytes on. What was read when the hole opened stays in it until it closes.
func (p *proxy) copy(to, from net.Conn, change func([]byte) []byte) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-p.passing()
		text := buffer[:n]
		if n > 0 && change != nil {
			text = change(text)
		}
		if text == nil {
			break
		}
		if n > 0 {
			if _, err := to.Write(text); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
}

func (p *proxy) translate(server net.Conn, client *bufio.Reader, rewrite func([]string) []string) {
	defer func() { _ = server.Close() }()
	for {
		command, err := readCommand(client)
		if err != nil {
			return
		}
		<-p.passing()
		p.mu.Lock()
		p.commands = append(p.commands, command)
		p.mu.Unlock()
		if writeCommand(server, rewrite(command)) != nil {
			return
		}
	}
}

func (p *proxy) passing() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// dropNextAnswer cuts the connection instead of passing on the server's next answer.
func (p *proxy) dropNextAnswer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = func([]byte) []byte {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.answer = nil
		return nil
	}
}

func (p *proxy) changed(text []byte) []byte {
	p.mu.Lock()
	change := p.answer
	p.mu.Unlock()
	if change == nil {
		return text
	}
	return change(text)
}

// hole lets nothing through in either direction, and nobody know.
func (p *proxy) hole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// heal lets everything through, late bytes included.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// cut ends every connection on both sides.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

// lead leads new connections elsewhere.
func (p *proxy) lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// sent returns the commands that clients sent since the last call, without those that open a connection.
func (p *proxy) sent() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	opening := []string{"hello", "client", "auth", "select"}
	commands := slices.DeleteFunc(p.commands, func(c []string) bool { return slices.Contains(opening, strings.ToLower(c[0])) })
	p.commands = nil
	return commands
}
