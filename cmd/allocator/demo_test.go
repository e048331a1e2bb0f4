package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

// ownTemp is a directory for temporary files in which nothing may be left.
func ownTemp(t *testing.T) string {
	t.Helper()
	dir := dataDir(t)
	require.NoError(t, os.Mkdir(dir, 0o711))
	require.NoError(t, os.Chmod(dir, 0o711))
	return dir
}

func requireEmptyDir(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDemoOnAServiceOfItsOwn(t *testing.T) {
	t.Parallel()
	temp := ownTemp(t)
	got := invoke(t, []string{"TMPDIR=" + temp}, "demo")
	require.Equal(t, exitDone, got.code, got.stdout+got.stderr)
	for _, piece := range []string{
		"100 servers, 100 of them free", "Held: ", "gives the same reservation", "met every requirement", "the same binding",
		"Refused, no_capacity (all_held): ", "if drives were relaxed", "The third customer tries again: ", "refused (reservation_expired)",
		"no_capacity (all_held)", "is free for the next order",
	} {
		require.Contains(t, got.stdout, piece)
	}
	require.Contains(t, got.stderr, "a service of the demo's own in "+temp)
	requireEmptyDir(t, temp)
}

// A key without support is not shown the servers that fit.
func TestDemoNeedsAKeyThatSeesServers(t *testing.T) {
	t.Parallel()
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(client.Evaluation{Servers: 3, Eligible: 2})
	}))
	t.Cleanup(door.Close)
	got := inProcess(t, map[string]string{"ALLOCATOR_URL": door.URL, "ALLOCATOR_API_KEY": "alk_x"}, "demo")
	require.Equal(t, exitNotAllowed, got.code, got.stderr)
	require.Contains(t, got.stderr, "Playing at "+door.URL+", with real servers of this key's organization")
	require.Contains(t, got.stderr, "use one with the scopes checkout, orders and support")
	require.Contains(t, inProcess(t, nil, "demo", "--help").stdout, "reserves and sells real servers")
}

func TestDemoCleansUpWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	temp := ownTemp(t)
	demo := start(t, []string{"TMPDIR=" + temp}, "demo")
	demo.until("The deadline passes") // it waits there for some seconds
	demo.signal(syscall.SIGINT)
	got := demo.wait()
	require.Equal(t, exitInterrupted, got.code, got.stderr)
	require.Contains(t, got.stderr, "allocator: interrupted\n")
	requireEmptyDir(t, temp)

	early := start(t, []string{"TMPDIR=" + temp}, "demo")
	require.Eventually(t, func() bool { left, err := os.ReadDir(temp); return err == nil && len(left) > 0 }, hang, poll)
	early.signal(syscall.SIGINT)
	require.Equal(t, exitInterrupted, early.wait().code)
	requireEmptyDir(t, temp)
}

func TestDemoOnAServiceWithALongHoldTime(t *testing.T) {
	t.Parallel()
	up := raiseUp(t, dataDir(t))
	got := invoke(t, up.env, "demo", "--json")
	require.Equal(t, exitDone, got.code, got.stdout+got.stderr)
	var titles []string
	for line := range strings.Lines(got.stdout) {
		var part chapter
		require.NoError(t, json.Unmarshal([]byte(line), &part))
		titles = append(titles, part.Title)
		require.True(t, part.Answer != nil || len(part.Lines) > 0, part.Title)
	}
	require.Len(t, titles, 10)
	require.Contains(t, got.stdout, "comes back at ")

	ready := asked[struct{ Items []client.Server }](t, up.env, "servers", "list", "--state", "ready", "--limit", "0")
	require.Len(t, ready.Items, 100, "what was sold is given back")
	up.stop(syscall.SIGTERM)
}
