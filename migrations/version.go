package migrations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

// Latest is the newest schema version this binary knows. It is also the oldest
// it can serve, because a binary needs every migration it was built with.
func Latest() int64 {
	latest := int64(riverNumber)
	for _, name := range namesIn(files) {
		if number, err := goose.NumericComponent(name); err == nil {
			latest = max(latest, number)
		}
	}
	return latest
}

// Queryer is a pool or a connection.
type Queryer interface {
	// QueryRow runs a statement of which at most one row is read.
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Version is the schema version of the database, 0 for one that was never migrated.
func Version(ctx context.Context, db Queryer) (int64, error) {
	var version int64
	err := db.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&version)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == pgerrcode.UndefinedTable {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	return version, nil
}

// ContentHash changes whenever a migration does. Test databases are kept by it.
func ContentHash() string { return contentHash(files) }

func contentHash(files fs.FS) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "river %d at %d\n", riverSchema, riverNumber)
	for _, name := range namesIn(files) {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			panic(fmt.Sprintf("migration %s cannot be read: %v", name, err)) // embedded, and just listed
		}
		fmt.Fprintf(hash, "%s %d\n%s\n", name, len(content), content)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

func namesIn(files fs.FS) []string {
	found, err := fs.Glob(files, "*.sql")
	if err != nil {
		panic(fmt.Sprintf("list the migrations: %v", err)) // the pattern is a constant
	}
	return found
}
