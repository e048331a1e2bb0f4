package postgres

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"allocator/reservation"
)

// answers are what the product makes of each SQLSTATE that it knows: a class of two characters, or a code of its own. A
// class or a code that stands nowhere is a failure, which is answered as an internal error. Constraints are told apart by
// their names, elsewhere.
var answers = map[string]clash{
	"08": clashUnavailable, "53": clashUnavailable, "57": clashUnavailable, "58": clashUnavailable,
	"25006": clashUnavailable, // the primary is one no more
	"25P03": clashUnavailable, // the server ended a transaction that stood idle
	"40001": clashRepeat, "40P01": clashRepeat,
	"55P03": clashLocked,
}

// Every SQLSTATE there is has one answer, and it is the documented one; what the product does not know is a failure, and
// never "taken".
//
// Requirements: R29. Cases: HO-09, OP-03.
func TestEverySQLSTATEHasItsAnswer(t *testing.T) {
	t.Parallel()
	codes := sqlstates(t)
	require.Greater(t, len(codes), 200)
	used := map[string]bool{}
	for _, code := range codes {
		want, key := clashNone, ""
		for _, each := range []string{code[:2], code} {
			if found, known := answers[each]; known {
				want, key = found, each
			}
		}
		used[key] = true
		requireAnswer(t, code, want)
	}
	for key := range answers {
		require.True(t, used[key], "no code is of %s", key)
	}
}

// FuzzSQLSTATE holds the same of codes that there are not, or not yet, and of names of constraints that are not known.
//
// Requirements: R28, R29.
func FuzzSQLSTATE(f *testing.F) {
	for _, seed := range []string{"23505", "23514", "40001", "XX000", "", "0800", "57P04", "5", "\x00", "53é00"} {
		f.Add(seed, "some_constraint")
	}
	for name := range kinds {
		f.Add("23505", name)
		f.Add("23514", name)
	}
	f.Fuzz(func(t *testing.T, code, constraint string) {
		err := fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, ConstraintName: constraint})
		got := clashOf(err)
		if kinds[constraint] == "" && (code == "23505" || code == "23514") {
			require.Equal(t, clashNone, got, "a rule that nobody knows is a failure")
		}
		require.ErrorIs(t, translate(err), err, "what the server said is kept")
		require.Equal(t, got, clashOf(translate(err)))
	})
}

// requireAnswer demands what becomes of a code, in the store's words and in the domain's.
func requireAnswer(t *testing.T, code string, want clash) {
	t.Helper()
	err := error(&pgconn.PgError{Code: code})
	require.Equal(t, want, clashOf(err), code)
	unavailable := want == clashUnavailable || want == clashLocked || want == clashRepeat
	require.Equal(t, unavailable, errors.Is(translate(err), reservation.ErrUnavailable), code)
	for _, word := range []error{reservation.ErrServerInUse, reservation.ErrServiceAlreadyBound, reservation.ErrExpired} {
		require.NotErrorIs(t, translate(err), word, "%s without a constraint's name is never %v", code, word)
	}
}

// sqlstates are the codes of the module that has them all, out of its source.
func sqlstates(t *testing.T) []string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/jackc/pgerrcode").Output()
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "errcode.go"), nil, 0)
	require.NoError(t, err)
	code := regexp.MustCompile(`^[0-9A-Z]{5}$`)
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && code.MatchString(text) {
				codes = append(codes, text)
			}
		}
		return true
	})
	return codes
}
