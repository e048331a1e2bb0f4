package httpapi

import (
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Contract and routes are the same set, and every operation says who may call it.
//
// Requirements: R65.
func TestContractAndRoutesAreTheSameSet(t *testing.T) {
	t.Parallel()
	s, err := New(Deps{Log: quiet()})
	require.NoError(t, err)
	for id, op := range s.operations {
		require.NotEmpty(t, id)
		require.NotEqual(t, op.open, len(op.scopes) > 0, "%s has scopes or is open, not both", id)
		require.Equal(t, op.open, len(op.path) < 4 || op.path[:4] != "/v1/", "%s: what is open is not under /v1", id)
	}
}

func TestStartIsRefusedWhenContractAndRoutesDiffer(t *testing.T) {
	t.Parallel()
	operations := map[string]*operation{"livez": {method: "GET", path: "/livez"}}
	require.NoError(t, mustMatch([]*echo.Route{{Method: "GET", Path: "/livez"}}, operations))
	require.ErrorContains(t, mustMatch(nil, operations), "no such route")
	require.ErrorContains(t, mustMatch([]*echo.Route{{Method: "GET", Path: "/livez"}, {Method: "POST", Path: "/secret"}}, operations), "POST /secret")
}

func TestOperationWithoutScopesIsRefused(t *testing.T) {
	t.Parallel()
	for name, extensions := range map[string]map[string]any{
		"no x-scopes at all":     {},
		"an empty list":          {"x-scopes": []any{}},
		"a scope that is none":   {"x-scopes": []any{"root"}},
		"open and a scope":       {"x-scopes": []any{"open", "admin"}},
		"a problem that is none": {"x-scopes": []any{"admin"}, "x-problems": []any{"nonsense"}},
	} {
		_, err := compileOperation("GET", "/v1/x", &openapi3.PathItem{}, &openapi3.Operation{OperationID: "x", Extensions: extensions})
		require.Error(t, err, name)
	}
}

// The document that callers get is valid by itself, and free of hints for the generator.
func TestPublishedDocumentIsValid(t *testing.T) {
	t.Parallel()
	s, err := New(Deps{Log: quiet()})
	require.NoError(t, err)
	document, err := openapi3.NewLoader().LoadFromData(s.published)
	require.NoError(t, err)
	require.NoError(t, document.Validate(t.Context()))
	require.NotContains(t, string(s.published), "x-go-")
	require.NotContains(t, string(s.published), "x-omitempty")
	for path, item := range document.Paths.Map() {
		for method, op := range item.Operations() {
			require.NotEmpty(t, op.Summary, "%s %s", method, path)
			require.Nil(t, op.Responses.Default(), "%s %s lists its errors by status", method, path)
			require.NotNil(t, op.Responses.Value("500"), "%s %s", method, path)
		}
	}
}

// The words of the contract are those of the domain: a state, reason or scope that one of them does not have would be
// an answer that no client expects, or a filter that finds nothing.
func TestContractKnowsEveryWordOfTheDomain(t *testing.T) {
	t.Parallel()
	document, _, err := loadContract()
	require.NoError(t, err)
	causes := []allocation.Cause{
		allocation.CauseInventoryEmpty, allocation.CauseNothingMatches, allocation.CauseAllHeld, allocation.CauseAllSold,
		allocation.CauseSameKey, allocation.CauseSameOrderLine, allocation.CauseServersTaken, allocation.CauseScanLimit, allocation.CauseAttemptLimit,
	}
	outcomes := []allocation.OutcomeCode{
		allocation.OutcomeReserved, allocation.OutcomeNoCapacity, allocation.OutcomeContended, allocation.OutcomeHoldLimit,
		allocation.OutcomeOrderLineHeld, allocation.OutcomeFeatureDisabled,
	}
	var codes []string
	for _, row := range problemTable {
		codes = append(codes, row.code)
	}
	for schema, words := range map[string][]string{
		"ReservationState": plain(reservation.States()),
		"ServerState":      plain(inventory.States()),
		"CancelReason":     plain(reservation.CancelReasons()),
		"Scope":            plain(identity.Scopes()),
		"ReasonCode":       plain(allocation.Codes()),
		"Cause":            plain(causes),
		"DecisionOutcome":  plain(outcomes),
		"ProblemCode":      codes,
	} {
		var have []string
		for _, value := range document.Components.Schemas[schema].Value.Enum {
			have = append(have, value.(string))
		}
		slices.Sort(words)
		require.ElementsMatch(t, slices.Compact(words), have, schema)
	}
}

// The order of fields in answers is given for every field, or a new one would come first.
func TestOrderOfAnswersNamesEveryField(t *testing.T) {
	t.Parallel()
	document, _, err := loadContract()
	require.NoError(t, err)
	text, err := os.ReadFile("oapi-order.yaml")
	require.NoError(t, err)
	var order struct {
		Actions []struct {
			Target string
			Update map[string]any
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &order))
	require.NotEmpty(t, order.Actions)
	for _, action := range order.Actions {
		name := strings.TrimSuffix(strings.TrimPrefix(action.Target, "$.components.schemas."), ".properties")
		schema := document.Components.Schemas[name]
		require.NotNil(t, schema, name)
		require.ElementsMatch(t, slices.Collect(maps.Keys(schema.Value.Properties)), slices.Collect(maps.Keys(action.Update)), name)
	}
}

func plain[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}
