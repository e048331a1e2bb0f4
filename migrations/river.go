package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	// riverNumber is the place of River's tables among our migrations.
	riverNumber = 2
	// riverSchema is the version of River's schema that riverNumber installs. It
	// is pinned, so that a new River in go.mod does not change what an old
	// migration does: a later River schema is a new migration here.
	riverSchema = 8
)

// riverMigration installs River's tables. It runs outside goose's transaction
// (RunDB), each of River's versions in its own: one of them uses an enum value
// that another adds, which PostgreSQL refuses in the same transaction. When it is
// interrupted it continues where it stopped.
func riverMigration(pool *pgxpool.Pool, log *slog.Logger) *goose.Migration {
	install := func(ctx context.Context, _ *sql.DB) error {
		migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: log})
		if err != nil {
			return fmt.Errorf("read River's migrations: %w", err)
		}
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: riverSchema})
		return err
	}
	return goose.NewGoMigration(riverNumber, &goose.GoFunc{RunDB: install}, nil)
}
