package postgrestest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

const (
	// setupTimeout bounds what one test may wait for its server or database.
	setupTimeout = 5 * time.Minute
	// releaseTimeout bounds the wait for connections a test has not given back.
	releaseTimeout = 30 * time.Second
	// poolSize is the most connections a pool opens; they are opened when needed.
	poolSize = 20
)

// shared is the one server of this test binary.
var shared = sync.OnceValues(func() (server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	return findServer(ctx, os.Getenv(urlEnv), startContainer, startLocal)
})

// New returns a pool on a fresh, migrated database. Both go away when the test
// ends. It may be called by parallel tests and several times in one test.
func New(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return Pool(tb, URL(tb))
}

// URL returns the connection string of a fresh, migrated database that is
// dropped when the test ends, whoever is still connected to it.
func URL(tb testing.TB) string {
	tb.Helper()
	server := mustServer(tb)
	template, err := server.template()
	if err != nil {
		tb.Fatalf("no test database: %v", err)
	}
	return freshDatabase(tb, server, template)
}

// EmptyURL is URL for a database without any migration.
func EmptyURL(tb testing.TB) string {
	tb.Helper()
	return freshDatabase(tb, mustServer(tb), "template1")
}

// Pool opens a pool of up to 20 connections that is closed when the test ends.
// A connection that the test has not released by then is an error of the test.
func Pool(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatalf("no pool: %v", err)
	}
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(tb.Context(), config)
	if err != nil {
		tb.Fatalf("no pool: %v", err)
	}
	tb.Cleanup(func() { closePool(tb, pool) })
	return pool
}

// IgnoreServer tells goleak that the goroutine that waits for a local server, as
// long as the test binary runs, is no leak of the test.
func IgnoreServer() goleak.Option {
	return goleak.IgnoreAnyFunction("allocator/store/postgres/embedded.startChild.func1")
}

func closePool(tb testing.TB, pool *pgxpool.Pool) {
	tb.Helper()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(releaseTimeout):
		tb.Errorf("%d connections of the pool were never released; look for a transaction or rows that are not closed", pool.Stat().AcquiredConns())
	}
}

func mustServer(tb testing.TB) server {
	tb.Helper()
	server, err := shared()
	if err != nil {
		tb.Fatal(err)
	}
	return server
}
