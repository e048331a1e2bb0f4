package postgrestest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Cable is a pool's way to its database, which a test can cut and mend. Safe for
// concurrent use.
type Cable struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// NewOnCable is New with the cable that the pool hangs on.
func NewOnCable(tb testing.TB) (*pgxpool.Pool, *Cable) {
	tb.Helper()
	config, err := pgxpool.ParseConfig(URL(tb))
	if err != nil {
		tb.Fatalf("no pool: %v", err)
	}
	c := &Cable{}
	config.ConnConfig.DialFunc = c.dial
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(tb.Context(), config)
	if err != nil {
		tb.Fatalf("no pool: %v", err)
	}
	tb.Cleanup(func() { closePool(tb, pool) })
	return pool, c
}

func (c *Cable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("no route to host")}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

// Cut ends every connection, and lets no other come about until Mend.
func (c *Cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close() // may be closed already
	}
	c.conns = nil
}

// Mend lets connections come about again.
func (c *Cable) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}
