package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"allocator/client"
	"allocator/store/postgres/postgrestest"
)

// addServers adds many, of which the odd ones are larger.
func (w *world) addServers(org string, n int) {
	w.exec(`INSERT INTO servers (organization_id, id, source, external_id, name, site, state, memory_mib)
		SELECT $1, uuid_v7(), 'test', n::text, 'm' || n, 'FSN1', 'ready', 1024 * (1 + n % 2) FROM generate_series(1, $2) n`, org, n)
}

// gated is a reader who lets each write wait until it is let through.
type gated struct {
	*httptest.ResponseRecorder

	arrived chan int
	pass    chan struct{}
}

func (g *gated) Write(p []byte) (int, error) {
	g.arrived <- len(p)
	<-g.pass
	return g.ResponseRecorder.Write(p)
}

// while does something while a write waits. If that waits for the write, the reader reads on, and the test fails.
func (g *gated) while(t *testing.T, read <-chan struct{}, do func()) {
	t.Helper()
	did := make(chan struct{})
	go func() {
		defer close(did)
		do()
	}()
	select {
	case <-did:
		return
	case <-time.After(patience):
	}
	for {
		select {
		case g.pass <- struct{}{}:
		case <-g.arrived:
		case <-read:
			require.Fail(t, "it waited for the reader")
		}
	}
}

// Whoever reads a list slowly keeps nobody from reserving, and gets the list of the instant at which it was made: each
// server once, also those that were reserved, sold or changed since.
//
// Requirements: R33.
func TestSlowReaderKeepsNobodyFromReserving(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServers("acme", 1500)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/evaluations",
		strings.NewReader(`{"requirements":{"memory":{"mib_min":2048}}}`))
	r.Header.Set("Authorization", "Bearer "+w.key("acme:support"))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/x-ndjson")
	reader := &gated{httptest.NewRecorder(), make(chan int), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.door.Handler().ServeHTTP(reader, r)
	}()
	reserved := 0
	for open := true; open; {
		select {
		case <-reader.arrived:
			if reserved < 5 { // while the write waits
				reserved++
				reader.while(t, done, func() {
					w.reserve("acme:all", fmt.Sprint("s", reserved), `"requirements":{"memory":{"mib_min":2048}}`).is(201, "")
					w.addServer(4096)
				})
			}
			reader.pass <- struct{}{}
		case <-done:
			open = false
		case <-time.After(patience):
			require.Fail(t, "nothing is written, and nothing ends")
		}
	}
	require.Equal(t, 5, reserved)
	seen := map[string]bool{}
	var end *client.EvaluationEnd
	for line := range strings.Lines(reader.Body.String()) {
		var one client.EvaluationLine
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		var id string
		switch {
		case one.Ranked != nil:
			id = one.Ranked.Server.ID
		case one.Rejected != nil:
			id = one.Rejected.ServerID
		default:
			end = one.Complete
			continue
		}
		require.False(t, seen[id], "%s is there twice", id)
		seen[id] = true
	}
	require.Equal(t, &client.EvaluationEnd{Ranked: 750, Rejected: 750}, end)
	require.Len(t, seen, 1500)
}

// A caller that hangs up in the middle of a list leaves nothing running, whoever it was and however often.
//
//nolint:paralleltest // others would be left running
func TestNothingIsLeftOfAReaderThatHangsUp(t *testing.T) {
	w := newWorld(t)
	w.addServers("acme", 40_000) // more than what the network keeps for a reader
	wanted := client.EvaluationRequest{Requirements: client.Requirements{Sites: client.Names{"elsewhere"}}}
	read := func(end int) {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		api, err := client.New(w.server.URL, w.key("acme:support"), client.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(t, err)
		lines := 0
		for _, err := range api.EvaluateInFull(t.Context(), wanted) {
			require.NoError(t, err)
			if lines++; lines == end {
				return
			}
		}
	}
	read(1)
	before := goleak.IgnoreCurrent()
	for range 20 { // more than may be read at once
		read(3)
	}
	require.Eventually(t, func() bool {
		return goleak.Find(before, postgrestest.IgnoreServer()) == nil
	}, patience, 50*time.Millisecond)
	read(40_002)
}

// The client yields every line, and says so when the list is not whole: cut between lines or in one, with servers missing,
// silent, or none at all.
func TestClientReadsListsInFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addServers("acme", 300)
	api, err := client.New(w.server.URL, w.key("acme:support"))
	require.NoError(t, err)
	var last client.EvaluationLine
	lines := 0
	for line, err := range api.EvaluateInFull(t.Context(), client.EvaluationRequest{Requirements: client.Requirements{Memory: client.MemoryRequirements{MibMin: 2048}}}) {
		require.NoError(t, err)
		lines, last = lines+1, line
	}
	require.Equal(t, 302, lines)
	require.Equal(t, &client.EvaluationEnd{Ranked: 150, Rejected: 150}, last.Complete)
	for _, err := range api.EvaluateInFull(t.Context(), client.EvaluationRequest{Key: strings.Repeat("x", 1000)}) {
		require.Equal(t, client.ProblemCode("invalid_request"), client.CodeOf(err))
	}

	const summary = `{"summary":{"at":"2026-01-01T00:00:00Z","text":"x","servers":1,"eligible":1,"counts":[]}}` + "\n"
	const server = `{"ranked":{"rank":1,"server":{"id":"srv_1","name":"m","site":"FSN1"}}}` + "\n"
	for name, answer := range map[string]string{
		"nothing":              "",
		"cut between lines":    summary + server,
		"cut in a line":        summary + server + `{"compl`,
		"a server is missing":  summary + `{"complete":{"ranked":1,"rejected":0}}` + "\n",
		"a server is too many": summary + server + server + `{"complete":{"ranked":1,"rejected":0}}` + "\n",
	} {
		require.ErrorIs(t, lastError(t, "application/x-ndjson", answer), client.ErrCutShort, name)
	}
	require.NoError(t, lastError(t, "application/x-ndjson", summary+server+`{"complete":{"ranked":1,"rejected":0}}`))
	require.ErrorContains(t, lastError(t, "application/json", `{}`), "older version")
	require.Error(t, lastError(t, "application/x-ndjson", "<html>"))
}

// lastError is how a list ends that a service answers with.
func lastError(t *testing.T, kind, answer string) (last error) {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(answer))
	}))
	defer service.Close()
	api, err := client.New(service.URL, "alk_x")
	require.NoError(t, err)
	for _, err := range api.EvaluateInFull(t.Context(), client.EvaluationRequest{}) {
		require.NoError(t, last, "an error is the last")
		last = err
	}
	return last
}

// What ends the caller's own call is told as such.
func TestClientThatGivesUpAList(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = w.Write([]byte(`{"summary":{"counts":[]}}` + "\n"))
		_ = http.NewResponseController(w).Flush()
		<-release
	}))
	defer service.Close()
	defer close(release)
	api, err := client.New(service.URL, "alk_x")
	require.NoError(t, err)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var last error
	for _, err := range api.EvaluateInFull(ctx, client.EvaluationRequest{}) {
		giveUp()
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
	require.NotErrorIs(t, last, client.ErrCutShort)
}
