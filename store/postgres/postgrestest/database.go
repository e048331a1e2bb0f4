package postgrestest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/migrations"
)

// templateLock is the advisory lock under which a template is made; any number
// does that nobody else uses in the server's maintenance database.
const templateLock = 7_316_458_802_231

// templateName is another one for other migrations, and in another month: what is kept of an earlier one lacks the
// partitions of the present.
var templateName = sync.OnceValue(func() string { return "allocator_template_" + migrations.ContentHash() + thisMonth() })

// thisMonth is that of UTC, as "_2006_01".
func thisMonth() string { return time.Now().UTC().Format("_2006_01") }

// ensureTemplate makes the migrated template database unless it is there. Several
// test binaries may ask the same server at once; one makes it, the others wait.
func ensureTemplate(ctx context.Context, adminURL, name string) error {
	conn, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return fmt.Errorf("connect to make the template database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // which also unlocks
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(templateLock)); err != nil {
		return fmt.Errorf("wait for the template database: %w", err)
	}
	var finished bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)", name).Scan(&finished)
	if err != nil {
		return fmt.Errorf("look for the template database: %w", err)
	}
	if finished {
		return nil
	}
	if err := makeTemplate(ctx, conn, adminURL, name); err != nil {
		return fmt.Errorf("make the template database: %w", err)
	}
	return nil
}

// makeTemplate marks the database as a template last, so that an interrupted
// attempt is recognised and begun again.
func makeTemplate(ctx context.Context, admin *pgx.Conn, adminURL, name string) error {
	if err := execute(ctx, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", "CREATE DATABASE "+name); err != nil {
		return err
	}
	url, err := databaseURL(adminURL, name)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	err = migrations.Up(ctx, pool, slog.New(slog.DiscardHandler))
	pool.Close()
	if err != nil {
		return err
	}
	return execute(ctx, admin, "ALTER DATABASE "+name+" WITH IS_TEMPLATE true ALLOW_CONNECTIONS false")
}

func execute(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// freshDatabase copies the template and returns the copy's URL.
func freshDatabase(tb testing.TB, server server, template string) string {
	tb.Helper()
	name := "allocator_test_" + randomSuffix()
	url, err := databaseURL(server.adminURL, name)
	if err != nil {
		tb.Fatalf("no test database: %v", err)
	}
	if err := administer(tb.Context(), server.adminURL, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		tb.Fatalf("no test database: %v", err)
	}
	tb.Cleanup(func() {
		if err := administer(context.WithoutCancel(tb.Context()), server.adminURL, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("the test database was not dropped: %v", err)
		}
	})
	return url
}

func randomSuffix() string { return strings.ToLower(rand.Text()[:16]) }

// administer runs statements that concern whole databases on a connection of
// their own: a pool kept for them would be a leak to tests that look for leaks.
func administer(ctx context.Context, adminURL string, statements ...string) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return err
	}
	return errors.Join(execute(ctx, conn, statements...), conn.Close(ctx))
}
