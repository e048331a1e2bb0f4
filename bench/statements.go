package bench

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Statement is what the database spent on one statement, those inside triggers and functions counted beside the ones
// that caused them. Times are for one operation, in milliseconds.
type Statement struct {
	Text  string  `json:"text"`
	Calls float64 `json:"calls"`
	Plan  float64 `json:"plan_ms"`
	Run   float64 `json:"run_ms"`
	WAL   float64 `json:"wal_bytes"`
}

// watchStatements makes the database count, if its settings let it.
func watchStatements(ctx context.Context, admin *pgxpool.Pool) error {
	_, err := admin.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements`)
	return err
}

func forgetStatements(ctx context.Context, admin *pgxpool.Pool) error {
	_, err := admin.Exec(ctx, `SELECT pg_stat_statements_reset()`)
	return err
}

// seenStatements are the most expensive ones since the last reset, for each of n operations.
func seenStatements(ctx context.Context, admin *pgxpool.Pool, n int) ([]Statement, error) {
	rows, err := admin.Query(ctx, `SELECT query, calls / $1::float8, total_plan_time / $1, total_exec_time / $1, wal_bytes::float8 / $1
		FROM pg_stat_statements WHERE query !~ 'pg_stat_statements|pg_wal_lsn_diff' AND calls >= $1 / 2
		ORDER BY total_plan_time + total_exec_time DESC LIMIT 25`, float64(n))
	if err != nil {
		return nil, err
	}
	statements, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Statement])
	for i := range statements {
		statements[i].Text = strings.Join(strings.Fields(statements[i].Text), " ")
	}
	return statements, err
}
