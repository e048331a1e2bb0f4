package allocator_test

import (
	"flag"
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

// A catalogue is a list of things that a test must show, each with an id. A test names them in its doc comment, in a
// sentence of its own that may stand behind others:
//
//	// Requirements: R03. Faults: F-C1, F-K7. Cases: HO-01.
//
// The catalogue's table in docs says for each id either which tests name it, or why none can: "not here: …". That column
// is written by `go test . -run Catalogue -write-catalogues`, as far as the tests go.
type catalogue struct {
	word string // that begins the sentence
	id   string // a pattern
	doc  string // where its table stands
	from string // the list that it follows, where that is at hand
	head string // what an id of that list stands behind, a pattern
}

var catalogues = []catalogue{
	{"Faults", `F-[A-Z]\d+`, "docs/operations.md", "../shared/FAULTS.md", `(?m)^\| (%s) \|`},
	{"Cases", `[A-Z]{2}-\d{2}`, "docs/operations.md", "../shared/CASES.md", `(?m)^### (%s) ·`},
}

// notHere begins the third column of what no test can show.
const notHere = "not here: "

var writeCatalogues = flag.Bool("write-catalogues", false, "write the names of tests into the tables of the catalogues")

// entry is one line of a catalogue's table.
type entry struct{ id, words, shown string }

// TestCatalogues holds the tables and the tests against each other.
func TestCatalogues(t *testing.T) {
	t.Parallel()
	if *writeCatalogues { // one after the other: two tables may stand in one document
		for _, c := range catalogues {
			c.write(t, c.named(t))
		}
	}
	for _, c := range catalogues {
		t.Run(c.word, func(t *testing.T) {
			t.Parallel()
			named := c.named(t)
			entries := c.entries(readText(t, c.doc))
			require.NotEmpty(t, entries, "%s has no table of %s", c.doc, c.word)
			known := map[string]bool{}
			for _, e := range entries {
				require.False(t, known[e.id], "%s stands twice in %s", e.id, c.doc)
				known[e.id] = true
				if strings.HasPrefix(e.shown, notHere) {
					require.Empty(t, named[e.id], "%s says why no test shows %s, and one does", c.doc, e.id)
					continue
				}
				require.NotEmpty(t, named[e.id], "no test names %s, and %s does not say why", e.id, c.doc)
				require.Equal(t, testNames(named[e.id]), e.shown, "%s of %s; -write-catalogues writes it", e.id, c.doc)
			}
			for id, tests := range named {
				require.True(t, known[id], "%v name %s, which is not in %s", tests, id, c.doc)
			}
			c.compare(t, known)
		})
	}
}

// TestCatalogueSentences shows what counts as a naming.
func TestCatalogueSentences(t *testing.T) {
	t.Parallel()
	faults := catalogues[0]
	for source, want := range map[string][]string{
		"// Faults: F-C1.\nfunc TestA() {}":                                {"F-C1"},
		"// Requirements: R01. Faults: F-C1, F-K7. More.\nfunc TestA() {}": {"F-C1", "F-K7"},
		"// Faults: F-H2.\nfunc FuzzA() {}":                                {"F-H2"},
		"func TestA() {\n\t// Faults: F-H3.\n\t_ = 1\n}":                   {"F-H3"},
		"// Like F-C1.\nfunc TestA() {}":                                   nil,
		"// Faults: F-C1.\nfunc helper() {}":                               nil,
	} {
		var got []string
		for id := range faults.namedIn(t, "x_test.go", "package x\n\n"+source+"\n") {
			got = append(got, id)
		}
		slices.Sort(got)
		require.Equal(t, want, got, source)
	}
	require.Len(t, faults.unreadable("// Fault: F-C1\n// Faults: F-C1 F-C2.\n// Faults: F-C3\n// Faults: F-C4.\n"), 3)
}

// TestCatalogueLinesAreReadable finds a sentence that was meant to name something and would be overlooked.
func TestCatalogueLinesAreReadable(t *testing.T) {
	t.Parallel()
	for _, c := range catalogues {
		for _, name := range testFiles(t) {
			require.Empty(t, c.unreadable(readText(t, name)), "in %s; see catalogue_test.go for how it is written", name)
		}
	}
}

// sentence is how a comment names ids.
func (c catalogue) sentence() *regexp.Regexp {
	return regexp.MustCompile(`\b` + c.word + `: (` + c.id + `(?:, ` + c.id + `)*)\.(?:\s|$)`)
}

// unreadable are the comment lines with something like the sentence that is none.
func (c catalogue) unreadable(source string) []string {
	like := regexp.MustCompile(`(?m)^\s*//.*\b` + c.word + `?:? ` + c.id + `.*$`)
	return slices.DeleteFunc(like.FindAllString(source, -1), c.sentence().MatchString)
}

// named are the tests that name each id.
func (c catalogue) named(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, name := range testFiles(t) {
		for id, tests := range c.namedIn(t, name, readText(t, name)) {
			all[id] = append(all[id], tests...)
		}
	}
	return all
}

func (c catalogue) namedIn(t *testing.T, name, source string) map[string][]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
	require.NoError(t, err)
	named, ids := map[string][]string{}, regexp.MustCompile(c.id)
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(function.Name.Name, "Test") && !strings.HasPrefix(function.Name.Name, "Fuzz") {
			continue
		}
		for _, comment := range commentsOf(parsed, function) {
			for _, match := range c.sentence().FindAllStringSubmatch(comment.Text(), -1) {
				for _, id := range ids.FindAllString(match[1], -1) {
					named[id] = append(named[id], function.Name.Name)
				}
			}
		}
	}
	return named
}

// row is a line of the table: id, a few words, the tests or the reason.
func (c catalogue) row() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\| (` + c.id + `) \| (.*?) \| (.*?) \|$`)
}

func (c catalogue) entries(text string) []entry {
	var entries []entry
	for _, match := range c.row().FindAllStringSubmatch(text, -1) {
		entries = append(entries, entry{match[1], match[2], match[3]})
	}
	return entries
}

// write fills in the names of tests.
func (c catalogue) write(t *testing.T, named map[string][]string) {
	t.Helper()
	text := c.row().ReplaceAllStringFunc(readText(t, c.doc), func(line string) string {
		e := c.entries(line)[0]
		if len(named[e.id]) > 0 {
			e.shown = testNames(named[e.id])
		}
		return fmt.Sprintf("| %s | %s | %s |", e.id, e.words, e.shown)
	})
	require.NoError(t, os.WriteFile(filepath.FromSlash(c.doc), []byte(text), 0o644))
}

// compare holds the ids against the list that they follow; elsewhere there is none.
func (c catalogue) compare(t *testing.T, known map[string]bool) {
	t.Helper()
	list, err := os.ReadFile(filepath.FromSlash(c.from))
	if err != nil {
		return
	}
	listed := map[string]bool{}
	for _, match := range regexp.MustCompile(fmt.Sprintf(c.head, c.id)).FindAllSubmatch(list, -1) {
		listed[string(match[1])] = true
	}
	require.Equal(t, listed, known, "%s follows %s", c.doc, c.from)
}

// testNames writes tests for a column, each once.
func testNames(tests []string) string {
	tests = slices.Clone(tests)
	slices.Sort(tests)
	tests = slices.Compact(tests)
	return "`" + strings.Join(tests, "`, `") + "`"
}

// testFiles are the test files below the root.
func testFiles(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(goFileNames(t), func(name string) bool {
		return !strings.HasSuffix(name, "_test.go") || !strings.Contains(name, "/")
	})
}
