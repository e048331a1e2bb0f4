package postgres

import (
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// A rule that names the columns it looks at names every one that its condition compares: else a statement that changes
// only the one that is missing would not meet the rule.
//
// Requirements: R39.
func TestRulesNameEveryColumnTheyLookAt(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	rows, err := pool.Query(t.Context(), `SELECT t.tgname::text, pg_get_triggerdef(t.oid), array_agg(a.attname::text)
		FROM pg_trigger t JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)
		WHERE t.tgqual IS NOT NULL GROUP BY t.oid, t.tgname`)
	require.NoError(t, err)
	type rule struct {
		Name, Definition string
		Columns          []string
	}
	rules, err := pgx.CollectRows(rows, pgx.RowToStructByPos[rule])
	require.NoError(t, err)
	require.Greater(t, len(rules), 8)
	for _, r := range rules {
		for _, compared := range regexp.MustCompile(`new\.(\w+)`).FindAllStringSubmatch(r.Definition, -1) {
			require.Contains(t, r.Columns, compared[1], r.Name)
		}
	}
}
