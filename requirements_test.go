package allocator_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A test names the requirements of docs/requirements.md that it proves in a line of its doc comment, or in a comment
// within it, beside the case that proves them:
//
//	// Requirements: R16, R22, R24.
//
// or in its own name: TestR16EightOrdersOverThreeServers. A range is written out (R04, R05, R06), a long list takes a
// second such line, and what follows the full stop is free.
var (
	requirementLine = regexp.MustCompile(`^Requirements: ((?:[RLDE]\d\d)(?:, [RLDE]\d\d)*)(?:\.(?: .*)?)?$`)
	requirement     = regexp.MustCompile(`[RLDE]\d\d`)
	naming          = regexp.MustCompile(`(?m)^\s*// (Requirements?:? +[RLDE]\d\d.*)$`)
	statement       = regexp.MustCompile(`(?m)(?:^- |\. )([RL]\d\d) `)
)

// notBuilt are statements that no test can name yet, each with the reason.
var notBuilt = map[string]string{
	"R58": "servers are reserved, rack units are not yet: there is no rack reservation whose hold time could be tested",
}

// TestEveryRequirementIsTested lists the statements of sections R and L that no test names.
func TestEveryRequirementIsTested(t *testing.T) {
	t.Parallel()
	tested := testedRequirements(t)
	var missing []string
	for _, number := range statedRequirements(t) {
		if _, later := notBuilt[number]; !later && len(tested[number]) == 0 {
			missing = append(missing, number)
		}
	}
	require.Empty(t, missing, "no test names these statements of docs/requirements.md; see requirements_test.go for how")
}

// TestEveryStatementOfDoorAndLeasesIsTested: sections D and E are built whole, so each of their numbers is named.
func TestEveryStatementOfDoorAndLeasesIsTested(t *testing.T) {
	t.Parallel()
	tested, text := testedRequirements(t), readText(t, "docs/requirements.md")
	stated := func(number string) bool {
		return strings.Contains(text, "\n- "+number+" ") || strings.Contains(text, ". "+number+" ")
	}
	for section, last := range map[string]int{"D": 20, "E": 31} {
		var missing []string
		for n := 1; n <= last; n++ {
			number := fmt.Sprintf("%s%02d", section, n)
			require.True(t, stated(number), number)
			if len(tested[number]) == 0 {
				missing = append(missing, number)
			}
		}
		require.Empty(t, missing, "no test names these statements of section %s", section)
		require.False(t, stated(fmt.Sprintf("%s%02d", section, last+1)), "section %s goes on", section)
	}
}

// TestNamedRequirementsExist finds a mistyped number, and an exception that has become untrue.
func TestNamedRequirementsExist(t *testing.T) {
	t.Parallel()
	text := readText(t, "docs/requirements.md")
	for number, places := range testedRequirements(t) {
		require.Regexp(t, `\b`+number+`\b`, text, "named in %v, but not in docs/requirements.md", places)
		require.NotContains(t, notBuilt, number, "named in %v: take it out of notBuilt", places)
	}
}

// TestRequirementLinesAreReadable finds a line that was meant to name something and would be overlooked.
func TestRequirementLinesAreReadable(t *testing.T) {
	t.Parallel()
	for _, name := range goFileNames(t) {
		if strings.HasSuffix(name, "_test.go") && strings.Contains(name, "/") {
			require.Empty(t, unreadable(readText(t, name)), "in %s; see requirements_test.go for how it is written", name)
		}
	}
}

// TestUnreadableLinesAreSeen shows what counts as such a line.
func TestUnreadableLinesAreSeen(t *testing.T) {
	t.Parallel()
	require.Empty(t, unreadable("// Requirements: R01, R02.\n\t// Requirements: L03\n// The requirements: none.\n"))
	for _, line := range []string{"// Requirements: R01-R03.", "\t// Requirements R04", "// Requirement: R05", "// Requirements: R06 R07"} {
		require.Len(t, unreadable("package x\n"+line+"\n"), 1, line)
	}
}

// TestRequirementLines shows what counts as a name and what does not.
func TestRequirementLines(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source string
		want   []string
	}{
		"a line of the doc comment": {"// TestA.\n// Requirements: R01, L02.\nfunc TestA() {}", []string{"R01", "L02"}},
		"beside a case":             {"func TestA() {\n\t// Requirements: R03\n\t_ = 1\n}", []string{"R03"}},
		"more behind the full stop": {"// Requirements: R09. Case: EX-10\nfunc TestA() {}", []string{"R09"}},
		"in the name":               {"func TestR04AndR05() {}", []string{"R04", "R05"}},
		"elsewhere in a sentence":   {"// TestA is like R06, which it does not prove.\nfunc TestA() {}", nil},
		"on a helper":               {"// Requirements: R07.\nfunc helper() {}", nil},
		"on a type":                 {"// Requirements: R08.\ntype TestA struct{}", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, namedIn(t, "x_test.go", "package x\n\n"+tt.source+"\n"))
		})
	}
}

// statedRequirements are the numbers of sections R and L, in order.
func statedRequirements(t *testing.T) []string {
	t.Helper()
	var numbers []string
	for _, match := range statement.FindAllStringSubmatch(readText(t, "docs/requirements.md"), -1) {
		numbers = append(numbers, match[1])
	}
	require.NotEmpty(t, numbers)
	return numbers
}

// testedRequirements maps each number to the test files that name it. Of the root's own tests only the one that replays
// the README proves anything of section R.
func testedRequirements(t *testing.T) map[string][]string {
	t.Helper()
	tested := map[string][]string{}
	for _, name := range goFileNames(t) {
		if !strings.HasSuffix(name, "_test.go") || !strings.Contains(name, "/") && name != "readme_test.go" {
			continue
		}
		for _, number := range namedIn(t, name, readText(t, name)) {
			if !slices.Contains(tested[number], name) {
				tested[number] = append(tested[number], name)
			}
		}
	}
	return tested
}

// namedIn reads the numbers that the test functions of one file name.
func namedIn(t *testing.T, name, source string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
	require.NoError(t, err)
	var numbers []string
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(function.Name.Name, "Test") {
			continue
		}
		numbers = append(numbers, requirement.FindAllString(function.Name.Name, -1)...)
		for _, comment := range commentsOf(parsed, function) {
			numbers = append(numbers, numbersIn(comment.Text())...)
		}
	}
	return numbers
}

// commentsOf are the doc comment of a function and the comments within it.
func commentsOf(file *ast.File, function *ast.FuncDecl) []*ast.CommentGroup {
	start := function.Pos()
	if function.Doc != nil {
		start = function.Doc.Pos()
	}
	var comments []*ast.CommentGroup
	for _, group := range file.Comments {
		if group.Pos() >= start && group.End() <= function.End() {
			comments = append(comments, group)
		}
	}
	return comments
}

func numbersIn(comment string) []string {
	var numbers []string
	for line := range strings.Lines(comment) {
		if match := requirementLine.FindStringSubmatch(strings.TrimSpace(line)); match != nil {
			numbers = append(numbers, requirement.FindAllString(match[1], -1)...)
		}
	}
	return numbers
}

// unreadable are the comment lines of a file that begin like a naming and are none.
func unreadable(source string) []string {
	var lines []string
	for _, match := range naming.FindAllStringSubmatch(source, -1) {
		if !requirementLine.MatchString(match[1]) {
			lines = append(lines, match[1])
		}
	}
	return lines
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	require.NoError(t, err)
	return string(text)
}
