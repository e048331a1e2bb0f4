//go:build gates

package concurrency_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// auditSQL is every invariant in one statement and so in one snapshot: a row for each violation.
var auditSQL = func() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(invariants)) {
		title := strings.ReplaceAll(name, "'", "''")
		parts = append(parts, fmt.Sprintf("SELECT '%s: ' || coalesce(x.broken, 'NULL') FROM (%s) AS x (broken)", title, invariants[name]))
	}
	return strings.Join(parts, "\nUNION ALL\n")
}()
