package postgrestest

import "testing"

// ClockedURL is URL for a database whose clock stands still at the beginning of 2031: time passes when the test changes
// the one row of test_clock, whose column is now. The database's own clock_timestamp() is found behind another of that
// name, so that statements, defaults and triggers that say clock_timestamp() go by it; now() does not.
func ClockedURL(tb testing.TB) string {
	tb.Helper()
	url := With(tb, URL(tb), map[string]string{"search_path": "public,pg_catalog"})
	err := administer(tb.Context(), url,
		`CREATE TABLE test_clock AS SELECT timestamptz '2031-01-01 00:00Z' AS now`,
		`CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT now FROM test_clock); END'`)
	if err != nil {
		tb.Fatalf("no clock: %v", err)
	}
	return url
}
