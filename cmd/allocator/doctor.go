package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/store/postgres"
)

// doctorCmd looks for what must not be in the database: broken promises, missing rules, jobs that stand still. It reads
// only.
type doctorCmd struct {
	databaseSettings
	Limit int `name:"limit" default:"5" placeholder:"N" help:"How many findings of each check to show."`
}

func (*doctorCmd) examples() string {
	return `
		allocator doctor
		allocator doctor --database-url postgres://allocator:secret@db:5432/allocator --json`
}

// checkResult is what one check came to.
type checkResult struct {
	ID     string   `json:"invariant,omitempty"`
	Name   string   `json:"check"`
	OK     bool     `json:"ok"`
	Found  int      `json:"found"`
	Shown  []string `json:"findings,omitempty"` // the first of them
	Remedy string   `json:"remedy,omitempty"`
}

// Run implements the command.
func (c *doctorCmd) Run(ctx context.Context, p *process) (err error) {
	db, err := connect(ctx, c.databaseSettings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close(ctx)) }()
	results, err := c.examine(ctx, p, db.pool)
	if err != nil {
		return err
	}
	failed := 0
	for _, r := range results {
		if !r.OK {
			failed++
		}
	}
	if p.json {
		err = p.printJSON(map[string]any{"ok": failed == 0, "checks": results})
	} else {
		printCheckup(p, results)
	}
	if err == nil && failed > 0 {
		return &findings{failed}
	}
	return err
}

// examine runs every check. A database that the service would not serve on is the first finding, and one whose schema
// does not fit the only one: the statements are about the present schema.
func (c *doctorCmd) examine(ctx context.Context, p *process, pool *pgxpool.Pool) ([]checkResult, error) {
	served := checkResult{Name: "the service can serve on this database", OK: true}
	if err := postgres.CheckServer(ctx, pool); err != nil {
		if exitCode(err) == exitRetry {
			return nil, err
		}
		served = checkResult{Name: served.Name, Found: 1, Shown: []string{err.Error()}, Remedy: "Do what the finding says."}
		if errors.Is(err, postgres.ErrSchemaBehind) || errors.Is(err, postgres.ErrSchemaAhead) {
			return []checkResult{served}, nil
		}
	}
	results := []checkResult{served}
	for _, one := range slices.Concat(saleChecks, guardChecks) {
		p.progressf("checking: %s …", one.Name)
		result, err := c.run(ctx, pool, one)
		if err != nil {
			return nil, fmt.Errorf("the check %q could not be made: %w", one.Name, err)
		}
		results = append(results, result)
	}
	return results, nil
}

// run makes one check in a read-only transaction with more time than a request has.
func (c *doctorCmd) run(ctx context.Context, pool *pgxpool.Pool, one check) (result checkResult, err error) {
	result = checkResult{ID: one.ID, Name: one.Name}
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = '10min'`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT finding FROM (`+one.SQL+`) AS found (finding)`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var finding string
			if err := rows.Scan(&finding); err != nil {
				return err
			}
			if result.Found++; len(result.Shown) < c.Limit {
				result.Shown = append(result.Shown, finding)
			}
		}
		return rows.Err()
	})
	if result.OK = err == nil && result.Found == 0; !result.OK {
		result.Remedy = one.Remedy
	}
	return result, err
}

func printCheckup(p *process, results []checkResult) {
	for _, r := range results {
		if r.OK {
			p.printf("ok    %-3s  %s\n", r.ID, r.Name)
			continue
		}
		p.printf("FAIL  %-3s  %s\n", r.ID, r.Name)
		for _, finding := range r.Shown {
			p.printf("             %s\n", finding)
		}
		if more := r.Found - len(r.Shown); more > 0 {
			p.printf("             and %d more\n", more)
		}
		p.printf("           What to do: %s\n", r.Remedy)
	}
}
