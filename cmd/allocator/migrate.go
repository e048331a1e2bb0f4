package main

import (
	"context"
	"errors"
	"log/slog"

	"allocator/migrations"
)

// migrateCmd brings the schema up to what this binary needs.
type migrateCmd struct {
	databaseSettings
	dataSettings
}

func (*migrateCmd) examples() string {
	return `
		allocator migrate --database-url postgres://allocator:secret@db:5432/allocator
		allocator migrate --json`
}

// Run implements the command. Replicas that run it together take turns.
func (c *migrateCmd) Run(ctx context.Context, p *process) (err error) {
	log := slog.New(slog.NewTextHandler(p.stderr, nil))
	db, err := openDatabase(ctx, p, c.databaseSettings, c.dataSettings, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close(ctx)) }()

	before, err := migrations.Version(ctx, db.pool)
	if err != nil {
		return err
	}
	if err := migrations.Up(ctx, db.pool, log); err != nil {
		return err
	}
	after, err := migrations.Version(ctx, db.pool)
	if err != nil {
		return err
	}
	switch {
	case p.json:
		return p.printJSON(map[string]int64{"from": before, "to": after})
	case before == after:
		p.printf("The schema is at version %d; there was nothing to do.\n", after)
	default:
		p.printf("The schema is at version %d now; it was at %d.\n", after, before)
	}
	return nil
}
