//go:build gates

package concurrency_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The eight rules of a reservation, each with the test that is named after it. A rule whose test is renamed or deleted
// does not compile here.
var eightRules = map[string]func(*testing.T){
	"the arbiter is in the database":           TestTheArbiterIsInTheDatabase,
	"one candidate at a time":                  TestOneCandidateAtATime,
	"a bounded scan":                           TestABoundedScan,
	"a savepoint per attempt":                  TestASavepointPerAttempt,
	"the constraint name decides":              TestTheConstraintNameDecides,
	"two kinds of refusal":                     TestTwoKindsOfRefusal,
	"promote, never release and rewrite":       TestPromoteNeverReleaseAndRewrite,
	"the deadline is kept at the point of use": TestTheDeadlineIsKeptAtThePointOfUse,
}

// Requirements: R68.
func TestEightRulesHaveTests(t *testing.T) {
	t.Parallel()
	require.Len(t, eightRules, 8)
	for rule, test := range eightRules {
		require.NotNil(t, test, rule)
	}
}
