package allocator_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// area is a part of the module with one set of rules: the folder of that name and everything below it.
type area struct {
	name string
	// mayImport are the areas that it may import beside itself.
	mayImport []string
	// libraries are the prefixes of third-party packages that it may import; nil means any.
	libraries []string
	// why stands beside a violation.
	why string
}

// none is the list of a package that lives on the standard library alone.
var none = []string{}

// domain are the packages that stores and doors speak of.
var domain = []string{"inventory", "identity", "events", "featureflags", "reservation", "allocation", "locking", "lease"}

// areas are the only import edges of this module. A folder that is not listed is refused too: place it here first.
// Where two names match, the longer one counts.
var areas = []area{
	{"inventory", none, none, "it is vocabulary, which everybody imports and which therefore imports nobody"},
	{"identity", none, none, "who calls is settled before anything else, without knowing what for"},
	{"events", none, none, "every package records events; knowing one of them would close a circle"},
	{"featureflags", none, []string{"github.com/open-feature/go-sdk"}, "a switch does not know what it switches"},
	{"locking", none, nil, "a lock is on a text; no sale depends on it"},
	{"lease", none, none, "a lease is on a text; selling never waits for an editor"},
	{"reservation", []string{"inventory", "identity", "events"}, none, "the life of a hold does not depend on how it was chosen or stored"},
	{
		"allocation",
		[]string{"inventory", "reservation", "identity", "events"},
		none,
		"choosing is pure judgement over a Store that it declares itself; switches and locks reach it as values",
	},
	{
		"sweeper",
		[]string{"reservation"},
		[]string{"github.com/riverqueue/river", "github.com/jackc/pgx/v5"}, // River's client is made from a pool and typed by its transaction
		"it only tidies: what it may do is the reservation package's word",
	},
	{"migrations", none, nil, "the schema is older than any code that runs on it"},
	{"store/postgres", append([]string{"migrations"}, domain...), nil, "it implements what the domain declares, and knows no door and no job"},
	{"transport/httpapi", domain, nil, "a door speaks to the domain, never to the store, the driver or another door"},
	{"transport/console", domain, nil, "a door speaks to the domain, never to the store, the driver or another door"},
	{"transport/redisport", domain, nil, "a door speaks to the domain, never to the store, the driver or another door"},
	{"client", none, nil, "a customer's program imports it, and must not get the service with it"},
	{"tools/mutants", none, none, "it changes a copy of the code and runs the tests; it must not depend on what it breaks"},
	{"tools/prove", none, none, "it runs the model and the tests from outside, as a person would"},
	{"bench", append([]string{"client", "store/postgres", "migrations", "transport/httpapi", "transport/redisport"}, domain...), nil, "it measures through the same doors as a caller"},
}

// wiring may import everything, and nobody may import it.
var wiring = []string{"cmd/allocator", "concurrency_test"}

// drivers are libraries through which a package would reach a database, a queue or the network by itself.
// They are allowed where the reason says so, and nowhere else.
var drivers = []struct {
	prefix string
	in     []string
	why    string
}{
	{"github.com/jackc/pgx", []string{"store/postgres", "migrations", "locking", "sweeper", "bench"}, "SQL stands in one place, where errors are translated"},
	{"github.com/riverqueue", []string{"sweeper", "migrations", "store/postgres"}, "a job only calls the domain; no correctness hangs on a queue"},
	{"github.com/labstack/echo", []string{"transport/httpapi", "transport/console"}, "handlers alone know that there is HTTP"},
	{"github.com/redis/go-redis", []string{"locking", "bench"}, "Redis is one backend of a lock, never a store"},
	{"github.com/tidwall/redcon", []string{"transport/redisport"}, "one door speaks Redis"},
	{"database/sql", []string{"migrations"}, "goose needs it; everybody else speaks pgx"},
	{"net/http", []string{"transport/httpapi", "transport/console", "client", "bench", "events"}, "the domain answers a call, whatever the door"},
}

// goFile is what these tests read of one file.
type goFile struct {
	path    string // slash-separated, from the root of the module
	imports map[string]int
}

func (f goFile) folder() string { return path.Dir(f.path) }
func (f goFile) isTest() bool   { return strings.HasSuffix(f.path, "_test.go") }

// TestImportEdges holds the layout: who may import whom, and which libraries where. Tests may import anything.
func TestImportEdges(t *testing.T) {
	t.Parallel()
	var violations []string
	for _, file := range goFiles(t) {
		if file.isTest() || inAny(file.folder(), wiring) {
			continue
		}
		violations = append(violations, violationsOf(file)...)
	}
	slices.Sort(violations)
	require.Empty(t, violations, "imports against the layout:\n%s", strings.Join(violations, "\n"))
}

// TestImportEdgesAreJudged shows that each kind of violation is seen.
func TestImportEdgesAreJudged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file, imports string
		violations    int
	}{
		"an edge of the layout is fine":                  {"reservation/a.go", "allocator/inventory", 0},
		"a package may import its own parts":             {"inventory/importer/a.go", "allocator/inventory", 0},
		"a part of another area follows that area":       {"reservation/a.go", "allocator/inventory/importer", 0},
		"an edge upwards is refused":                     {"inventory/a.go", "allocator/reservation", 1},
		"a door may not import another door":             {"transport/console/a.go", "allocator/transport/httpapi", 1},
		"a door may not import the store":                {"transport/httpapi/a.go", "allocator/store/postgres", 1},
		"nobody imports the wiring":                      {"bench/a.go", "allocator/cmd/allocator", 1},
		"the standard library is fine":                   {"events/a.go", "encoding/json", 0},
		"a library in a domain package is refused":       {"events/a.go", "github.com/google/uuid", 1},
		"the driver in a domain package is refused once": {"allocation/a.go", "github.com/jackc/pgx/v5", 1},
		"the driver behind a door is refused":            {"transport/httpapi/a.go", "github.com/jackc/pgx/v5/pgconn", 1},
		"the queue in the sweeper is fine":               {"sweeper/a.go", "github.com/riverqueue/river", 0},
		"a name that only begins alike is another":       {"store/postgres/a.go", "github.com/jackc/pgxother", 0},
		"a folder that nobody placed is refused":         {"helpers/a.go", "fmt", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := violationsOf(goFile{path: tt.file, imports: map[string]int{tt.imports: 1}})
			require.Len(t, got, tt.violations, "%v", got)
		})
	}
}

// TestEveryPackageHasDoc: what a package owns and what it must not know is said in its doc.go (doc_test.go where a
// folder holds tests alone). The root holds no package, only these tests.
func TestEveryPackageHasDoc(t *testing.T) {
	t.Parallel()
	folders, files, code := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, file := range goFiles(t) {
		folder := file.folder()
		folders[folder] = true
		files[file.path] = true
		code[folder] = code[folder] || !file.isTest()
	}
	var missing []string
	for folder := range folders {
		name := path.Join(folder, "doc_test.go")
		if code[folder] {
			name = path.Join(folder, "doc.go")
		}
		if folder != "." && !files[name] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	require.Empty(t, missing, "missing, with what the package owns and what it must not know")
}

// violationsOf judges one file's imports, each with the place and the reason.
func violationsOf(file goFile) []string {
	home, ok := areaOf(file.folder())
	if !ok {
		return []string{file.path + ": no rule for this folder: add it to areas in layout_test.go, with the reason"}
	}
	var found []string
	for imported, line := range file.imports {
		if why := refusal(home, imported); why != "" {
			found = append(found, fmt.Sprintf("%s:%d: %s may not import %s: %s", file.path, line, home.name, imported, why))
		}
	}
	return found
}

// refusal is why an area may not import a package, or empty.
func refusal(home area, imported string) string {
	if inner, ok := strings.CutPrefix(imported, "allocator/"); ok {
		target, placed := areaOf(inner)
		if placed && (target.name == home.name || slices.Contains(home.mayImport, target.name)) {
			return ""
		}
		return home.why
	}
	for _, d := range drivers {
		if within(imported, d.prefix) && !slices.Contains(d.in, home.name) {
			return d.why
		}
	}
	if home.libraries != nil && isThirdParty(imported) && !inAny(imported, home.libraries) {
		return home.why
	}
	return ""
}

// areaOf finds the longest name that the folder lies in.
func areaOf(folder string) (area, bool) {
	var best area
	for _, a := range areas {
		if within(folder, a.name) && len(a.name) > len(best.name) {
			best = a
		}
	}
	return best, best.name != ""
}

func inAny(folder string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return within(folder, parent) })
}

func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// isThirdParty: the first element of a path outside the standard library is a host, which has a dot.
func isThirdParty(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".")
}

// goFiles reads the imports of every Go file of the module, whatever its build constraints. Files are read rather than
// asked of the go command, so that a violation has its line and a cached test result knows what it depends on.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	for _, name := range goFileNames(t) {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.FromSlash(name), nil, parser.ImportsOnly)
		require.NoError(t, err)
		file := goFile{path: name, imports: map[string]int{}}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			file.imports[imported] = set.Position(spec.Pos()).Line
		}
		files = append(files, file)
	}
	return files
}

// goFileNames walks the module: no hidden folders, no test data, no folder that is a module of its own.
func goFileNames(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && notOurs(name):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ".go"):
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

func notOurs(folder string) bool {
	base := filepath.Base(folder)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}
