package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/jackc/pgx/v5"
)

// urlEnv names a server to be used by tests.
const urlEnv = "TEST_DATABASE_URL"

// server is a PostgreSQL in which the tests may create databases.
type server struct {
	adminURL string
	// template returns the name of the migrated template database, made at the first call.
	template func() (string, error)
}

// newServer checks that the server answers.
func newServer(ctx context.Context, adminURL string) (server, error) {
	conn, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return server{}, err
	}
	if err := conn.Close(ctx); err != nil {
		return server{}, err
	}
	template := sync.OnceValues(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), setupTimeout)
		defer cancel()
		return templateName(), ensureTemplate(ctx, adminURL, templateName())
	})
	return server{adminURL: adminURL, template: template}, nil
}

// databaseURL is the connection string of a database on the server.
func databaseURL(adminURL, database string) (string, error) {
	u, err := url.Parse(adminURL)
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("%s must be a URL such as postgres://user:password@host:5432/postgres", urlEnv)
	}
	u.Path = "/" + database
	return u.String(), nil
}

// source starts a server, or finds one, and returns its URL.
type source func(context.Context) (adminURL string, err error)

// findServer takes the first source that works. TEST_DATABASE_URL is a wish: when
// it is set and does not work, nothing else is tried.
func findServer(ctx context.Context, given string, others ...source) (server, error) {
	if given != "" {
		if _, err := databaseURL(given, "any"); err != nil {
			return server{}, fmt.Errorf("no PostgreSQL for tests: %w", err)
		}
		found, err := newServer(ctx, given)
		if err != nil {
			return server{}, fmt.Errorf("no PostgreSQL for tests: the one at %s does not answer: %w", urlEnv, err)
		}
		return found, nil
	}
	var reasons []error
	for _, start := range others {
		adminURL, err := start(ctx)
		if err == nil {
			return newServer(ctx, adminURL)
		}
		reasons = append(reasons, err)
	}
	return server{}, fmt.Errorf("no PostgreSQL for tests: set %s, start a container engine, or install the server's binaries: %w",
		urlEnv, errors.Join(reasons...))
}
