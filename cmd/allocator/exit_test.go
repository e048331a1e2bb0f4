package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/client"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/reservation"
)

// refusing is a service that refuses everything in the same way.
func refusing(t *testing.T, status int, code client.ProblemCode) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(client.Problem{
			Status: status, Code: code, Title: "T", Detail: "One sentence.", RequestID: "req-1", Type: "/problems/" + string(code),
			Errors: []client.Fault{{Pointer: "/order_id", Code: "required", Detail: "must not be empty"}},
		})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Cases: OP-11.
func TestExitCodeOfARefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   client.ProblemCode
		exit   int
	}{
		{http.StatusBadRequest, "invalid_request", 2},
		{http.StatusBadRequest, "idempotency_key_invalid", 2},
		{http.StatusUnprocessableEntity, "idempotency_mismatch", 2},
		{http.StatusRequestEntityTooLarge, "too_large", 2},
		{http.StatusUnsupportedMediaType, "unsupported_media_type", 2},
		{http.StatusNotFound, "not_found", 3},
		{http.StatusGone, "decision_gone", 3},
		{http.StatusConflict, "no_capacity", 4},
		{http.StatusForbidden, "feature_disabled", 4},
		{http.StatusConflict, "contended", 5},
		{http.StatusConflict, "lock_held", 5},
		{http.StatusConflict, "lease_held", 5},
		{http.StatusGone, "lease_lost", 7},
		{http.StatusForbidden, "edit_refused", 6},
		{http.StatusConflict, "job_running", 5},
		{http.StatusConflict, "lock_lost", 7},
		{http.StatusServiceUnavailable, "locks_unavailable", 5},
		{http.StatusTooManyRequests, "rate_limited", 5},
		{http.StatusServiceUnavailable, "unavailable", 5},
		{http.StatusServiceUnavailable, "outcome_unknown", 5},
		{http.StatusUnauthorized, "unauthenticated", 6},
		{http.StatusForbidden, "missing_scope", 6},
		{http.StatusForbidden, "not_holder", 6},
		{http.StatusConflict, "hold_limit", 7},
		{http.StatusConflict, "order_line_held", 7},
		{http.StatusConflict, "reservation_expired", 7},
		{http.StatusConflict, "already_converted", 7},
		{http.StatusPreconditionFailed, "precondition_failed", 7},
		{http.StatusInternalServerError, "internal", 1},
	} {
		t.Run(fmt.Sprintf("%d %s is %d", c.status, c.code, c.exit), func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"ALLOCATOR_URL": refusing(t, c.status, c.code), "ALLOCATOR_API_KEY": "alk_x"}
			for _, args := range [][]string{
				{"reserve", "--order", "A-1"},
				{"renew", "res_1"},
				{"cancel", "A-1"},
				{"convert", "res_1", "--service", "s"},
				{"evaluate"},
				{"evaluate", "--full"},
				{"explain", "A-1"},
				{"servers", "list"},
				{"servers", "show", "srv_1"},
				{"servers", "capacity"},
				{"servers", "state", "srv_1", "ready", "--reason", "fan"},
				{"keys", "list"},
				{"flags", "list"},
				{"orgs", "list"},
				{"demo"},
			} {
				got := inProcess(t, env, args...)
				require.Equal(t, c.exit, got.code, "%v: %s", args, got.stderr)
				require.Contains(t, got.stderr, "allocator: One sentence. ("+string(c.code)+")\n")
				require.Contains(t, got.stderr, "  /order_id: must not be empty\n")
				require.Contains(t, got.stderr, "try again in 2s\n")
				require.Contains(t, got.stderr, "  request req-1\n")
				require.Equal(t, c.code == client.ProblemCodeNotHolder, strings.Contains(got.stderr, "--hold-token TOKEN"), got.stderr)
				require.NotContains(t, got.stderr, "{")
				if args[0] != "demo" {
					require.Empty(t, got.stdout)
				}
			}
		})
	}
}

// Cases: OP-11.
func TestExitCodeOfAnErrorOfTheDomain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		exit int
	}{
		{errors.New("anything"), 1},
		{usagef("no"), 2},
		{&identity.InvalidError{Fields: []identity.FieldError{{Pointer: "/name"}}}, 2},
		{featureflags.ErrPercentOutOfRange, 2},
		{identity.ErrOrganizationNotFound, 3},
		{identity.ErrKeyNotFound, 3},
		{featureflags.ErrUnknownFlag, 3},
		{featureflags.ErrOverrideNotFound, 3},
		{reservation.ErrNotFound, 3},
		{allocation.ErrFeatureDisabled, 4},
		{reservation.ErrUnavailable, 5},
		{reservation.ErrOutcomeUnknown, 5},
		{identity.ErrUnavailable, 5},
		{fmt.Errorf("%w (x)", client.ErrCutShort), 5},
		{&identity.ScopeError{}, 6},
		{identity.ErrUnauthenticated, 6},
		{&forbidden{"no"}, 6},
		{identity.ErrOrganizationExists, 7},
		{&identity.VersionError{}, 7},
		{&findings{1}, 7},
	} {
		require.Equal(t, c.exit, exitCode(fmt.Errorf("wrapped: %w", c.err)), "%v", c.err)
	}
}

// Cases: OP-11.
func TestWhatIsNoAnswerOfTheService(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/orders/page" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>welcome</html>"))
			return
		}
		http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())

	for sentence, c := range map[string]struct {
		url, order, says string
		exit             int
	}{
		"an error page of a proxy":  {proxy.URL, "x", "status 502 is not Allocator's", exitFailure},
		"a page of something else":  {proxy.URL, "page", "not one of Allocator's", exitFailure},
		"nobody listens":            {"http://" + closed.Addr().String(), "x", "nothing listens at http://" + closed.Addr().String(), exitFailure},
		"an address that is none":   {"localhost:8080", "x", "the address of the service cannot be used", exitUsage},
		"an address with no scheme": {"allocator", "x", "the address of the service cannot be used", exitUsage},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			got := inProcess(t, map[string]string{"ALLOCATOR_URL": c.url, "ALLOCATOR_API_KEY": "alk_x"}, "explain", c.order)
			require.Equal(t, c.exit, got.code, got.stderr)
			require.Contains(t, got.stderr, c.says)
			require.NotContains(t, got.stderr, "<html>")
		})
	}
}

// Cases: OP-11.
func TestCommandLinesThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	key := map[string]string{"ALLOCATOR_API_KEY": "alk_x"}
	for sentence, c := range map[string]struct {
		env  map[string]string
		args []string
		says string
	}{
		"an unknown command":             {nil, []string{"resreve"}, "unexpected argument resreve"},
		"an unknown flag":                {nil, []string{"reserve", "--ordr", "A"}, `did you mean "--order"?`},
		"a missing flag":                 {key, []string{"reserve"}, "--order=ID"},
		"no key":                         {nil, []string{"reserve", "--order", "A"}, "no API key is given: set ALLOCATOR_API_KEY"},
		"a wait that is too long":        {key, []string{"reserve", "--order", "A", "--wait", "1m"}, "--wait is between 1s and 5s"},
		"a reason that there is not":     {key, []string{"cancel", "res_1", "--reason", "bored"}, "--reason"},
		"no database to look into":       {nil, []string{"doctor"}, "set ALLOCATOR_DATABASE_URL"},
		"whose keys":                     {map[string]string{"ALLOCATOR_DATABASE_URL": "postgres://db/a"}, []string{"keys", "list"}, "--org"},
		"whose keys, over HTTP":          {key, []string{"keys", "list", "--org", "acme"}, "the API key decides the organization"},
		"nothing to set":                 {key, []string{"orgs", "set", "acme"}, "nothing is to be changed"},
		"a percentage of one":            {key, []string{"flags", "set", "reservations", "50", "--org", "acme"}, "on or off"},
		"a value that is none":           {key, []string{"flags", "set", "reservations", "maybe"}, "on, off, or a percentage"},
		"a service without a key":        {map[string]string{"ALLOCATOR_URL": "http://127.0.0.1:1"}, []string{"demo"}, "set ALLOCATOR_API_KEY"},
		"serve without hold token keys":  {nil, []string{"serve"}, "openssl rand -hex 32"},
		"hold token keys that are short": {map[string]string{"ALLOCATOR_HOLD_TOKEN_KEYS": "k1:00"}, []string{"serve"}, "at least 32 bytes"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			got := inProcess(t, c.env, c.args...)
			require.Equal(t, exitUsage, got.code, got.stderr)
			require.Contains(t, got.stderr, c.says)
			require.Empty(t, got.stdout)
		})
	}
}

func TestEveryCommandShowsItsExamplesFirst(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"up", "serve", "demo", "migrate", "reserve", "renew", "convert", "cancel", "evaluate", "explain", "servers", "orgs", "keys", "flags",
		"doctor", "config", "version", "servers list", "servers show", "orgs list", "orgs create", "keys create", "flags unset",
	} {
		got := inProcess(t, nil, append(strings.Fields(name), "--help")...)
		name, _, _ = strings.Cut(name, " ") // a command below another one shows the examples of all
		require.Equal(t, exitDone, got.code)
		require.Regexp(t, `^Examples:\n  (\S+=\S+ |\S+="[^"]*" )*allocator `+name, got.stdout)
		require.Empty(t, got.stderr)
	}
	require.Contains(t, inProcess(t, nil, "serve", "--help").stdout, "ALLOCATOR_HOLD_TOKEN_KEYS_FILE")
	require.Contains(t, inProcess(t, nil).stdout, "Usage: allocator <command>")
	require.Equal(t, inProcess(t, nil), inProcess(t, nil, "help"))
	require.NotContains(t, inProcess(t, nil, "reserve", "--help").stdout, "Exit codes:")
	for _, code := range []int{exitDone, exitFailure, exitUsage, exitNotFound, exitNoServer, exitRetry, exitNotAllowed, exitConflict, exitInterrupted} {
		require.Contains(t, inProcess(t, nil, "help").stdout, fmt.Sprintf("\n%5d  ", code))
	}
	require.Equal(t, inProcess(t, nil, "version"), inProcess(t, nil, "--version"))
	require.Equal(t, inProcess(t, nil, "version", "--json"), inProcess(t, nil, "--version", "--json"))
	require.Contains(t, inProcess(t, nil, "--version").stdout, "allocator dev (schema ")
	require.Equal(t, inProcess(t, nil, "keys", "create", "--help"), inProcess(t, nil, "help", "keys", "create"))
}
