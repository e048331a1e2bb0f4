//go:build gates

package concurrency_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// auditSQL is every invariant in one statement and so in one snapshot: a row for each violation.
var auditSQL = oneStatement(invariants)

func oneStatement(sets ...map[string]string) string {
	var parts []string
	for _, set := range sets {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			title := strings.ReplaceAll(name, "'", "''")
			parts = append(parts, fmt.Sprintf("SELECT '%s: ' || coalesce(x.broken, 'NULL') FROM (%s) AS x (broken)", title, set[name]))
		}
	}
	return strings.Join(parts, "\nUNION ALL\n")
}

// auditPause is between two looks of an auditor.
const auditPause = 20 * time.Millisecond

// audit looks once.
func (w *world) audit(sql string) (found []string, err error) {
	rows, err := w.pool.Query(w.ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// auditor looks for violations, and for what else it is told to look for, again and again, until stop, which fails the
// test with what it found and tells how often it looked.
func (w *world) auditor(also ...map[string]string) (stop func() (looks int)) {
	w.t.Helper()
	sql := oneStatement(append(also, invariants)...)
	ctx, cancel := context.WithCancel(w.ctx)
	var found []string
	var failure error
	looks := 0
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil && len(found) == 0 && failure == nil {
			found, failure = w.audit(sql)
			looks++
			select { // the others need the processors too
			case <-ctx.Done():
			case <-time.After(auditPause):
			}
		}
	})
	return func() int {
		w.t.Helper()
		cancel()
		done.Wait()
		require.NoError(w.t, failure)
		require.Empty(w.t, found, "seen by the auditor at look %d", looks)
		return looks
	}
}

// many reads a column.
func many[T any](w *world, sql string, args ...any) []T {
	w.t.Helper()
	rows, err := w.pool.Query(w.ctx, sql, args...)
	require.NoError(w.t, err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(w.t, err)
	return values
}
