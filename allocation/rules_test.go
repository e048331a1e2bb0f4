package allocation

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/inventory"
)

// Every row of the table of reasons is complete, and can be told apart from every other.
//
// Requirements: R33
func TestRules(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(rules), 63, "a verdict has a bit for each row, and the database's bigint 63 of them")
	reasons, params := map[Reason]bool{}, map[string]bool{}
	for i, rule := range rules {
		name := string(rule.Code) + " " + rule.Requirement
		require.NotEmpty(t, rule.Code, "row %d", i)
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, string(rule.Code), name)
		require.Regexp(t, `^[A-Z].*\.$`, rule.Sentence, name)
		require.Regexp(t, `^[A-Z].*\.$`, rule.Remedy, name)
		require.NotEmpty(t, rule.HoldsSQL, name)
		require.NotNil(t, rule.Check, name)

		reason := reasonAt(i, false)
		require.False(t, reasons[reason], "two rows have the reason %s", name)
		reasons[reason] = true
		require.NotEqual(t, CodeUnknownAttribute, rule.Code, name)

		asked := rule.Requirement != ""
		require.Equal(t, asked, rule.Param != "", name)
		require.Equal(t, asked, rule.ParamType != "", name)
		require.Equal(t, asked, rule.Arg != nil, name)
		require.True(t, rule.UnknownSQL == "" || asked, "%s: states and holders are always known", name)
		if asked {
			require.False(t, params[rule.Param], "two rows have the parameter %s", rule.Param)
			params[rule.Param] = true
			require.Contains(t, rule.HoldsSQL, "q."+rule.Param, name)
		}
	}
}

// A copy of the table is handed out: nobody changes the reasons from outside.
//
// Requirements: R33
func TestRulesAreACopy(t *testing.T) {
	t.Parallel()
	Rules()[0].Code = "changed"
	require.Equal(t, CodeSite, rules[0].Code)
}

// Whatever an order can ask for is judged by a rule, and no rule judges what an order cannot ask for.
//
// Requirements: R32
func TestEveryRequirementHasARule(t *testing.T) {
	t.Parallel()
	var judged []string
	for _, rule := range rules {
		if rule.Requirement != "" && !slices.Contains(judged, rule.Requirement) {
			judged = append(judged, rule.Requirement)
		}
	}
	require.ElementsMatch(t, requirementPaths(reflect.TypeFor[Requirements](), ""), judged)
}

// The generators of these tests know every field too.
//
// Requirements: R32
func TestEveryFieldIsDrawn(t *testing.T) {
	t.Parallel()
	var drawn []string
	for name := range fields {
		drawn = append(drawn, name)
	}
	require.ElementsMatch(t, requirementPaths(reflect.TypeFor[Requirements](), ""), drawn)
}

// requirementPaths lists the JSON paths that an order can fill in. A pointer to a struct is one requirement with
// several parts.
func requirementPaths(of reflect.Type, prefix string) []string {
	var paths []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type.Kind() == reflect.Struct {
			paths = append(paths, requirementPaths(field.Type, prefix+name+".")...)
			continue
		}
		paths = append(paths, prefix+name)
	}
	return paths
}

// Each state but ready is a reason of its own.
//
// Requirements: R32
func TestEveryStateButReadyIsAReason(t *testing.T) {
	t.Parallel()
	seen := map[Code]bool{}
	for _, state := range inventory.States() {
		reasons := Judge(&Requirements{}, &Facts{Server: inventory.Server{State: state}}).Reasons()
		if state.Sellable() {
			require.Empty(t, reasons)
			continue
		}
		require.Equal(t, []Reason{{Code: Code("state_" + state)}}, reasons)
		seen[reasons[0].Code] = true
	}
	require.Len(t, seen, len(inventory.States())-1)
}

// Describe has words for every reason that a candidate can carry, and there is no code beside those.
//
// Requirements: R33
func TestDescribeIsTotal(t *testing.T) {
	t.Parallel()
	codes := Codes()
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(codes))), len(codes), "a code is listed twice")
	reasons := []Reason{}
	for i := range rules {
		reasons = append(reasons, reasonAt(i, false), reasonAt(i, true))
	}
	for code := range fitting {
		reasons = append(reasons, Reason{Code: code})
	}
	told := map[Code]bool{}
	for _, reason := range reasons {
		sentence, remedy := Describe(reason)
		require.NotEmpty(t, sentence, "%+v", reason)
		require.NotEmpty(t, remedy, "%+v", reason)
		told[reason.Code] = true
	}
	for _, code := range codes {
		require.True(t, told[code], "nobody can carry the code %s", code)
	}
	sentence, _ := Describe(Reason{Code: CodeUnknownAttribute, Requirement: "memory.ecc"})
	require.Contains(t, sentence, `"memory.ecc"`)
}

// Everything that a rule or a walk can say stands in Codes, from which schemas and documents are made.
//
// Requirements: R33
func TestCodesAreComplete(t *testing.T) {
	t.Parallel()
	codes := Codes()
	for _, rule := range rules {
		require.Contains(t, codes, rule.Code)
	}
	for code := range fitting {
		require.Contains(t, codes, code)
	}
	for _, outcome := range []TryOutcome{TryReserved, TrySkipped, TryStale, TryLost} {
		require.Contains(t, codes, Code(outcome), "what became of a walked candidate")
	}
}
