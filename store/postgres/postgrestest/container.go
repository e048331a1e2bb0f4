package postgrestest

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// imageEnv chooses another image, to test against another version of PostgreSQL.
const (
	imageEnv     = "TEST_POSTGRES_IMAGE"
	defaultImage = "postgres:17-alpine"
)

// startContainer returns the URL of a server in a container. The container's name
// is that of the go test run, so that its test binaries share one; it is removed
// by testcontainers' own reaper after the last of them has ended.
func startContainer(ctx context.Context) (string, error) {
	if err := probeEngine(ctx); err != nil {
		return "", err
	}
	container, err := postgres.Run(ctx, cmp.Or(os.Getenv(imageEnv), defaultImage),
		postgres.WithDatabase("postgres"),
		postgres.WithUsername("postgres"),
		postgres.WithPassword("postgres"),
		postgres.BasicWaitStrategies(),
		testcontainers.WithReuseByName("allocator-postgrestest-"+testcontainers.SessionID()),
		testcontainers.WithCmdArgs("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=300"),
	)
	if err != nil {
		return "", fmt.Errorf("start a PostgreSQL container: %w", err)
	}
	return container.ConnectionString(ctx, "sslmode=disable")
}

// probeEngine tells whether a container engine answers. The library panics in
// some environments that have none.
func probeEngine(ctx context.Context) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("no container engine: %v", reason)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return fmt.Errorf("no container engine: %w", err)
	}
	defer func() { _ = provider.Close() }()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("no container engine: %w", err)
	}
	return nil
}
