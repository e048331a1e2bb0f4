//go:build gates && unix

package concurrency_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/store/postgres"
)

// loss is what a proxy does with the next batch that commits a change.
type loss int32

const (
	loseNothing    loss = iota
	loseAnswer          // the server has it and answers; the answer is swallowed and the connection closed
	loseRequest         // the server never sees it; the connection is closed
	loseEverything      // the server has it and answers; from then on nothing comes back, and nobody hangs up
)

// proxy stands between a service and PostgreSQL. It reads the protocol as far as needed to know what each batch
// executes: a batch is what the client sends before it waits for an answer, and so one round trip.
type proxy struct {
	server   func() (net.Conn, error)
	listener net.Listener
	next     atomic.Int32 // a loss

	mu       sync.Mutex
	batches  [][]string // the statements of each batch
	passages []*passage
}

// throughProxy puts the world's services on a pool of so many connections behind a new proxy.
func (w *world) throughProxy(conns int32, options ...allocation.Option) *proxy {
	w.t.Helper()
	config, err := pgx.ParseConfig(w.url)
	require.NoError(w.t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	p := &proxy{listener: listener, server: func() (net.Conn, error) { return net.Dial(network, address) }}
	w.t.Cleanup(func() { _ = listener.Close() })
	go p.accept()

	host, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(w.t, err)
	pool, err := postgres.Open(w.ctx, w.with(map[string]string{"host": host, "port": port, "sslmode": "disable"}), postgres.PoolOptions{MaxConns: conns})
	require.NoError(w.t, err)
	w.t.Cleanup(pool.Close)
	w.t.Cleanup(p.hangUp) // first: the driver takes its time to leave a connection that is silent
	w.serve(pool, options...)
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // the test is over
		}
		server, err := p.server()
		if err != nil {
			_ = client.Close()
			continue
		}
		s := &passage{proxy: p, client: client, server: server, prepared: map[string]string{}}
		p.mu.Lock()
		p.passages = append(p.passages, s)
		p.mu.Unlock()
		go s.requests()
		go s.answers()
	}
}

// hangUp closes every connection that is still open.
func (p *proxy) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.passages {
		s.close()
	}
}

// forget begins the count anew.
func (p *proxy) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batches = nil
}

// roundTrips lists the batches since the last forget.
func (p *proxy) roundTrips() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.batches
}

// passage is one connection through a proxy.
type passage struct {
	*proxy
	client, server net.Conn
	prepared       map[string]string // statement name to SQL
	begun          bool              // a transaction, by the client
	swallow        atomic.Int32      // a loss that is under way
}

func (s *passage) close() {
	_ = s.client.Close()
	_ = s.server.Close()
}

// frame is one message of the protocol. The very first of a client has no kind.
type frame struct {
	kind byte
	raw  []byte
	body []byte
}

func readFrame(from *bufio.Reader, withKind bool) (frame, error) {
	var f frame
	header := make([]byte, 4, 5)
	if withKind {
		header = header[:5]
	}
	if _, err := io.ReadFull(from, header); err != nil {
		return f, err
	}
	if withKind {
		f.kind = header[0]
	}
	length := binary.BigEndian.Uint32(header[len(header)-4:])
	if length < 4 || length > 1<<26 {
		return f, errors.New("this is not PostgreSQL's protocol")
	}
	f.body = make([]byte, length-4)
	if _, err := io.ReadFull(from, f.body); err != nil {
		return f, err
	}
	f.raw = slices.Concat(header, f.body)
	return f, nil
}

// words cuts the body into its first n texts.
func (f frame) words(n int) []string {
	var words []string
	rest := f.body
	for range n {
		word, more, _ := bytes.Cut(rest, []byte{0})
		words, rest = append(words, string(word)), more
	}
	return words
}

// requests passes on what the client sends, a batch at a time.
func (s *passage) requests() {
	defer s.close()
	from := bufio.NewReader(s.client)
	startup, err := readFrame(from, false)
	if err != nil {
		return
	}
	if _, err := s.server.Write(startup.raw); err != nil {
		return
	}
	var batch []byte
	var executes []string
	for {
		f, err := readFrame(from, true)
		if err != nil {
			return
		}
		batch = append(batch, f.raw...)
		switch f.kind {
		case 'P': // Parse
			words := f.words(2)
			s.prepared[words[0]] = words[1]
		case 'B': // Bind
			executes = append(executes, s.prepared[f.words(2)[1]])
		case 'Q': // Query
			executes = append(executes, f.words(1)[0])
		}
		if !strings.ContainsRune("SQHXp", rune(f.kind)) {
			continue // the client has not yet said that it waits
		}
		if !s.pass(f.kind, batch, executes) {
			return
		}
		batch, executes = nil, nil
	}
}

// pass sends a batch to the server, unless it is to be lost, and tells whether the connection lives on.
func (s *passage) pass(end byte, batch []byte, executes []string) bool {
	if end == 'S' || end == 'Q' {
		s.note(executes)
		if s.commits(executes) {
			lost := s.next.Swap(int32(loseNothing))
			if loss(lost) == loseRequest {
				return false
			}
			s.swallow.Store(lost)
		}
	}
	_, err := s.server.Write(batch)
	return err == nil
}

// commits tells whether the batch commits a change: by a COMMIT, or without one by writing where no transaction was begun.
func (s *passage) commits(executes []string) bool {
	writes := false
	for _, sql := range executes {
		switch {
		case sql == "COMMIT":
			s.begun = false
			return true
		case sql == "ROLLBACK":
			s.begun = false
		case strings.HasPrefix(sql, "BEGIN"):
			s.begun = true
		case strings.Contains(sql, "INSERT INTO "):
			writes = true
		}
	}
	return writes && !s.begun
}

// note counts a batch, but not the pool's looking whether the connection is alive.
func (s *passage) note(executes []string) {
	if len(executes) == 1 && executes[0] == "-- ping" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, executes)
}

// answers passes on what the server sends, or swallows it up to the end of a batch.
func (s *passage) answers() {
	defer func() {
		if loss(s.swallow.Load()) != loseEverything {
			s.close()
		}
	}()
	from := bufio.NewReader(s.server)
	for {
		f, err := readFrame(from, true)
		if err != nil {
			return
		}
		if loss(s.swallow.Load()) == loseNothing {
			if _, err := s.client.Write(f.raw); err != nil {
				return
			}
		} else if f.kind == 'Z' { // ReadyForQuery: the server has done it all
			return
		}
	}
}
