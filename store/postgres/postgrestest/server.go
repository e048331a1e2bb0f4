package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
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
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
		defer cancel()
		return ensureTemplate(ctx, adminURL)
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

// findServer takes the first source that works. TEST_DATABASE_URL is a wish: when
// it is set and does not work, nothing else is tried.
func findServer(ctx context.Context) (server, error) {
	if given := os.Getenv(urlEnv); given != "" {
		found, err := newServer(ctx, given)
		if err != nil {
			return server{}, fmt.Errorf("no PostgreSQL for tests: the one at %s does not answer: %w", urlEnv, err)
		}
		return found, nil
	}
	adminURL, dockerErr := startContainer(ctx)
	if dockerErr != nil {
		var localErr error
		if adminURL, localErr = startLocal(ctx); localErr != nil {
			return server{}, fmt.Errorf("no PostgreSQL for tests: set %s, start a container engine, or install the server's binaries: %w",
				urlEnv, errors.Join(dockerErr, localErr))
		}
	}
	return newServer(ctx, adminURL)
}
