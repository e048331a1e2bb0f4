package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

// A program that reads JSON is never given anything else: what fails says so on stderr and by its code, and prints no
// half of a value.
//
// Cases: OP-11.
func TestFailureLeavesNoBrokenJSON(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]client.ProblemCode{401: "unauthenticated", 404: "not_found", 409: "contended", 412: "precondition_failed", 503: "unavailable"} {
		env := map[string]string{"ALLOCATOR_URL": refusing(t, status, code), "ALLOCATOR_API_KEY": "alk_x"}
		for _, args := range [][]string{{"reserve", "--order", "A-1"}, {"explain", "A-1"}, {"servers", "list"}, {"servers", "capacity"}, {"keys", "list"}, {"evaluate"}} {
			got := inProcess(t, env, append(args, "--json")...)
			require.NotEqual(t, exitDone, got.code, "%v", args)
			require.Equal(t, inProcess(t, env, args...).code, got.code, "%v", args)
			require.Contains(t, got.stderr, "One sentence.")
			require.True(t, got.stdout == "" || json.Valid([]byte(got.stdout)), "%v: %s", args, got.stdout)
		}
	}
}

// Whoever reads only the first line (| head -1) ends the command, which neither succeeds nor breaks down in words.
//
// Cases: OP-11.
func TestReaderThatLeaves(t *testing.T) {
	t.Parallel()
	var items []client.Server
	for i := range 3000 {
		items = append(items, client.Server{ID: fmt.Sprint("srv_", i), Name: strings.Repeat("n", 100), Site: "FSN1", State: "ready"})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
	}))
	t.Cleanup(server.Close)
	for _, more := range [][]string{nil, {"--json"}} {
		reader, writer, err := os.Pipe()
		require.NoError(t, err)
		cmd := command(t, []string{"ALLOCATOR_URL=" + server.URL, "ALLOCATOR_API_KEY=alk_x"}, append([]string{"servers", "list"}, more...)...)
		var stderr strings.Builder
		cmd.Stdout, cmd.Stderr = writer, &stderr
		require.NoError(t, reader.Close())
		require.NoError(t, cmd.Start())
		require.NoError(t, writer.Close())
		require.Error(t, cmd.Wait(), "0 is for full success alone")
		require.NotContains(t, stderr.String(), "goroutine")
	}
}

// Ctrl-C ends what waits for an answer, with a code of its own.
//
// Cases: OP-11.
func TestInterruptedWhileItWaits(t *testing.T) {
	t.Parallel()
	asked, over := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	running := start(t, []string{"ALLOCATOR_URL=" + server.URL, "ALLOCATOR_API_KEY=alk_x"}, "reserve", "--order", "A-1", "--json")
	<-asked
	require.NoError(t, running.cmd.Process.Signal(syscall.SIGINT))
	got := running.wait()
	require.Equal(t, exitInterrupted, got.code, got.stderr)
	require.Contains(t, got.stderr, "interrupted")
	require.Empty(t, got.stdout)
}
