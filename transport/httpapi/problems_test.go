package httpapi

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/events"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/inventory"
	"allocator/lease"
	"allocator/reservation"
)

// Every row says what can be done, and no two codes are the same.
//
// Requirements: R37.
func TestProblemTableIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range problemTable {
		require.False(t, seen[row.code], row.code)
		seen[row.code] = true
		require.NotEmpty(t, row.title, row.code)
		require.True(t, strings.HasSuffix(row.sentence, "."), row.code)
		require.NotEmpty(t, actionWords[row.action], row.code)
		require.GreaterOrEqual(t, row.status, 400, row.code)
	}
	require.NotEqual(t, problemTypes["contended"].action, problemTypes["no_capacity"].action)
}

// answered lists, for every error of the domain that a door can see, the code that it becomes.
var answered = map[string]struct {
	err  error
	code string
}{
	"reservation.ErrNotFound":              {reservation.ErrNotFound, "not_found"},
	"reservation.ErrExpired":               {reservation.ErrExpired, "reservation_expired"},
	"reservation.ErrCancelled":             {reservation.ErrCancelled, "reservation_cancelled"},
	"reservation.ErrRenewalLimit":          {reservation.ErrRenewalLimit, "renewal_limit"},
	"reservation.ErrNotHolder":             {reservation.ErrNotHolder, "not_holder"},
	"reservation.ErrServiceAlreadyBound":   {reservation.ErrServiceAlreadyBound, "service_already_bound"},
	"reservation.ErrServerInUse":           {reservation.ErrServerInUse, "server_in_use"},
	"reservation.ErrBindingEnded":          {reservation.ErrBindingEnded, "binding_ended"},
	"reservation.ErrStaleFence":            {reservation.ErrStaleFence, "stale_fence"},
	"reservation.ErrVersionMismatch":       {reservation.ErrVersionMismatch, "precondition_failed"},
	"reservation.ErrUnavailable":           {reservation.ErrUnavailable, "unavailable"},
	"reservation.ErrOutcomeUnknown":        {reservation.ErrOutcomeUnknown, "outcome_unknown"},
	"reservation.AlreadyConvertedError":    {&reservation.AlreadyConvertedError{}, "already_converted"},
	"inventory.ErrNotFound":                {inventory.ErrNotFound, "not_found"},
	"inventory.ErrExists":                  {inventory.ErrExists, "server_exists"},
	"inventory.ErrInUse":                   {inventory.ErrInUse, "server_in_use"},
	"inventory.ErrVersionMismatch":         {inventory.ErrVersionMismatch, "precondition_failed"},
	"inventory.VersionError":               {&inventory.VersionError{}, "precondition_failed"},
	"inventory.InvalidError":               {&inventory.InvalidError{}, "invalid_request"},
	"lease.ErrHeld":                        {lease.ErrHeld, "lease_held"},
	"lease.ErrLostRace":                    {lease.ErrLostRace, "lease_held"},
	"lease.HeldError":                      {&lease.HeldError{Lease: &lease.Lease{}}, "lease_held"},
	"lease.ErrLost":                        {lease.ErrLost, "lease_lost"},
	"lease.LostError":                      {&lease.LostError{}, "lease_lost"},
	"lease.ErrEditRefused":                 {lease.ErrEditRefused, "edit_refused"},
	"lease.ErrCeiling":                     {lease.ErrCeiling, "lease_ceiling"},
	"lease.ErrTooManyWatchers":             {lease.ErrTooManyWatchers, "unavailable"},
	"lease.InvalidError":                   {&lease.InvalidError{}, "invalid_request"},
	"identity.ErrOrganizationNotFound":     {identity.ErrOrganizationNotFound, "not_found"},
	"identity.ErrOrganizationExists":       {identity.ErrOrganizationExists, "organization_exists"},
	"identity.ErrKeyNotFound":              {identity.ErrKeyNotFound, "not_found"},
	"identity.ErrUnauthenticated":          {identity.ErrUnauthenticated, "unauthenticated"},
	"identity.ErrUnavailable":              {identity.ErrUnavailable, "unavailable"},
	"identity.RefusedError":                {&identity.RefusedError{}, "unauthenticated"},
	"identity.VersionError":                {&identity.VersionError{}, "precondition_failed"},
	"identity.InvalidError":                {&identity.InvalidError{}, "invalid_request"},
	"identity.ScopeError":                  {&identity.ScopeError{}, "scope_exceeded"},
	"allocation.ErrDecisionGone":           {allocation.ErrDecisionGone, "decision_gone"},
	"allocation.ErrIdempotencyMismatch":    {allocation.ErrIdempotencyMismatch, "idempotency_mismatch"},
	"allocation.ErrFeatureDisabled":        {allocation.ErrFeatureDisabled, "feature_disabled"},
	"featureflags.ErrUnknownFlag":          {featureflags.ErrUnknownFlag, "not_found"},
	"featureflags.ErrPercentOutOfRange":    {featureflags.ErrPercentOutOfRange, "invalid_request"},
	"featureflags.ErrOrganizationNotFound": {featureflags.ErrOrganizationNotFound, "not_found"},
	"featureflags.ErrOverrideNotFound":     {featureflags.ErrOverrideNotFound, "not_found"},
	"events.ErrCursorInvalid":              {events.ErrCursorInvalid, "invalid_request"},
}

func TestEveryErrorOfTheDomainHasItsAnswer(t *testing.T) {
	t.Parallel()
	for name, want := range answered {
		wrapped := fmt.Errorf("while doing something: %w", want.err)
		require.Equal(t, want.code, translate(wrapped).code, name)
	}
	for _, pkg := range []string{"reservation", "inventory", "identity", "allocation", "featureflags", "events", "lease"} {
		for _, name := range errorsOf(t, pkg) {
			require.Contains(t, answered, pkg+"."+name, "say in the table of problems how it is answered, and here that you did")
		}
	}
}

// errorsOf lists the exported errors of a domain package: variables named Err… and types named …Error. A FieldError is
// a part of another.
func errorsOf(t *testing.T, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*.go"))
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declared := range parsed.Decls {
			general, ok := declared.(*ast.GenDecl)
			if !ok || strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, spec := range general.Specs {
				names = append(names, errorNames(spec)...)
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}

func errorNames(spec ast.Spec) (names []string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if strings.HasPrefix(name.Name, "Err") {
				names = append(names, name.Name)
			}
		}
	case *ast.TypeSpec:
		if strings.HasSuffix(s.Name.Name, "Error") && s.Name.Name != "FieldError" && s.Name.IsExported() {
			names = append(names, s.Name.Name)
		}
	}
	return names
}

func TestUnknownErrorsBecomeInternalAndStayInside(t *testing.T) {
	t.Parallel()
	p := translate(errors.New("pq: relation secret_table does not exist"))
	require.Equal(t, "internal", p.code)
	require.NotContains(t, fmt.Sprint(p.body("r")), "secret")
	require.ErrorContains(t, p, "secret_table") // the log has it
}

// A lost answer of COMMIT is told as such, whatever else the error carries.
func TestOutcomeUnknownWinsOverItsCompany(t *testing.T) {
	t.Parallel()
	p := translate(errors.Join(reservation.ErrUnavailable, context.DeadlineExceeded, reservation.ErrOutcomeUnknown))
	require.Equal(t, "outcome_unknown", p.code)
	require.Contains(t, []string{"1", "2", "3"}, p.header.Get("Retry-After"))
}

func TestRouterErrorsAreProblemsToo(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{
		400: "invalid_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type", 418: "internal",
	} {
		require.Equal(t, code, translate(echo.NewHTTPError(status, "words of the router")).code)
	}
}
