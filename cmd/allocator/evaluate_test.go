package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

func TestTheNearestMissIsSaidOnce(t *testing.T) {
	t.Parallel()
	const nearest = `Without the requirement "sites" 1 server would fit at once.`
	for _, text := range []string{"None of 3 servers meets every requirement. " + nearest, "None of 3 servers meets every requirement."} {
		var out bytes.Buffer
		require.NoError(t, (&process{stdout: &out}).showEvaluation(client.Evaluation{Text: text, Nearest: client.Nearest{Text: nearest}}, 10))
		require.Equal(t, 1, strings.Count(out.String(), nearest), out.String())
	}
}

// In full, each server is shown as it comes, with everything that speaks against it; for programs as one object to a line, as the
// service writes it. A list that was cut is a failure that may go away, and what came is shown.
func TestEvaluationInFull(t *testing.T) {
	t.Parallel()
	const reasons = `"reasons":[{"code":"memory_size","requirement":"memory.mib_min","text":"It has less.","remedy":"r"},{"code":"held","text":"It is held.","remedy":"r"}]`
	lines := []string{
		`{"summary":{"at":"2026-01-01T00:00:00Z","text":"Of 2 servers 1 fits.","servers":2,"eligible":1,"counts":[{"code":"held","servers":1,"text":"It is held.","remedy":"r"}]}}`,
		`{"ranked":{"rank":1,"server":{"id":"srv_1","name":"one","site":"FSN1","cpu":{},"memory":{"mib":2048},"price":{}}}}`,
		`{"rejected":{"server_id":"srv_2","name":"","site":"HEL1","eligible":false,` + reasons + `,"notes":[{"code":"under_edit","text":"t","remedy":"r"}]}}`,
		`{"complete":{"ranked":1,"rejected":1}}`,
	}
	answer := func(lines []string) map[string]string {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Accept"))
			_, _ = w.Write([]byte(strings.Join(lines, "\n") + "\n"))
		}))
		t.Cleanup(service.Close)
		return map[string]string{"ALLOCATOR_URL": service.URL, "ALLOCATOR_API_KEY": "alk_x"}
	}
	got := inProcess(t, answer(lines), "evaluate", "--full")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "Of 2 servers 1 fits.")
	require.Contains(t, got.stdout, "\n1  srv_1  one  FSN1  2 GiB\n")
	require.Contains(t, got.stdout, "\n-  srv_2  -  HEL1  memory_size: It has less. held: It is held., under_edit\n")

	got = inProcess(t, answer(lines), "evaluate", "--full", "--json")
	require.Equal(t, exitDone, got.code, got.stderr)
	shown := strings.Split(strings.TrimSpace(got.stdout), "\n")
	require.Len(t, shown, len(lines))
	for i, line := range lines[2:] {
		require.JSONEq(t, line, shown[i+2])
	}

	got = inProcess(t, answer(lines[:3]), "evaluate", "--full")
	require.Equal(t, exitRetry, got.code)
	require.Contains(t, got.stdout, "srv_2")
	require.Contains(t, got.stderr, "the list was cut before its end")
}
