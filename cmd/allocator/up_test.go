package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
	"allocator/store/postgres/postgrestest"
)

// raised is an `up` that serves.
type raised struct {
	*running
	upAnswer
	env []string // for client commands
}

func raiseUp(t *testing.T, dir string, more ...string) *raised {
	t.Helper()
	r := &raised{running: start(t, nil, append([]string{"up", "--listen", "127.0.0.1:0", "--data-dir", dir, "--json"}, more...)...)}
	decoder := json.NewDecoder(strings.NewReader(r.line()))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&r.upAnswer))
	r.env = []string{"ALLOCATOR_URL=" + r.URL, "ALLOCATOR_API_KEY=" + r.APIKey}
	return r
}

// stop ends it by a signal and requires an orderly end with nothing more on stdout.
func (r *raised) stop(s syscall.Signal) {
	r.t.Helper()
	r.signal(s)
	got := r.wait()
	require.Equal(r.t, exitDone, got.code, got.stderr)
	require.Empty(r.t, got.stdout, "exactly one line")
}

// asked runs a client command that must succeed and decodes its JSON.
func asked[T any](t *testing.T, env []string, args ...string) T {
	t.Helper()
	got := invoke(t, env, append(args, "--json")...)
	require.Equal(t, exitDone, got.code, "%v: %s", args, got.stderr)
	var answer T
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer), got.stdout)
	return answer
}

// status asks over HTTP.
func status(t *testing.T, r *raised, path string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+path, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+r.APIKey)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

func TestUpIsThereAgainAfterAStop(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)

	// 1. A first start serves, with everything a first look needs.
	up := raiseUp(t, dir)
	require.Equal(t, "demo", up.Organization)
	require.Eventually(t, func() bool { // the inventory is read first
		code, _ := status(t, up, "/readyz")
		return code == http.StatusOK
	}, hang, poll)
	reservation := asked[client.Reservation](t, up.env, "reserve", "--order", "A-1", "--memory-gib", "64", "--customer", "c-1", "--key", "k-1")
	require.Equal(t, client.ReservationStateHeld, reservation.State)
	again := asked[client.Reservation](t, up.env, "reserve", "--order", "A-1", "--memory-gib", "64", "--customer", "c-1", "--key", "k-1")
	require.Equal(t, reservation.ID, again.ID)
	require.Equal(t, reservation.HoldToken, again.HoldToken)
	code, body := status(t, up, "/v1/reservations/"+reservation.ID)
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, reservation.Server.ID)

	// 2. The directory is one process's.
	second := invoke(t, nil, "up", "--listen", "127.0.0.1:0", "--data-dir", dir)
	require.Equal(t, exitFailure, second.code)
	require.Regexp(t, `^allocator: the data directory is in use: .* is served by process \d+; .*\n$`, second.stderr)
	require.Empty(t, second.stdout)

	// 3. Its secrets are for its user alone.
	for _, name := range []string{tokenKeysFile, apiKeyFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}

	// 4. The second start has the same key, finds the reservation, and its hold token still counts.
	up.stop(syscall.SIGTERM)
	next := raiseUp(t, dir)
	require.Equal(t, up.APIKey, next.APIKey)
	renewed := asked[client.Reservation](t, next.env, "renew", reservation.ID, "--hold-token", *reservation.HoldToken)
	require.Equal(t, reservation.ID, renewed.ID)
	binding := asked[client.Binding](t, next.env, "convert", "A-1", "--service", "svc-1")
	require.Equal(t, reservation.Server.ID, binding.Server.ID)
	order := asked[client.Order](t, next.env, "explain", "A-1")
	require.Len(t, order.Reservations, 1)
	require.Equal(t, client.ReservationStateConverted, order.Reservations[0].State)
	servers := asked[struct{ Items []client.Server }](t, next.env, "servers", "list", "--limit", "0")
	require.Len(t, servers.Items, 100, "the sample is there once")
	doctor := invoke(t, []string{"ALLOCATOR_DATABASE_URL=" + next.DatabaseURL}, "doctor")
	require.Equal(t, exitDone, doctor.code, doctor.stdout)
	next.stop(syscall.SIGINT)
}

func TestUpAfterAKill(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	up := raiseUp(t, dir)
	reservation := asked[client.Reservation](t, up.env, "reserve", "--order", "A-1", "--key", "k-1")
	up.signal(syscall.SIGKILL)
	require.Equal(t, -1, up.wait().code)

	next := raiseUp(t, dir)
	require.Equal(t, up.APIKey, next.APIKey)
	again := asked[client.Reservation](t, next.env, "reserve", "--order", "A-1", "--key", "k-1")
	require.Equal(t, reservation.ID, again.ID)
	require.Equal(t, reservation.Server.ID, again.Server.ID)
	next.stop(syscall.SIGTERM)
}

func TestUpOnAGivenDatabase(t *testing.T) {
	t.Parallel()
	dir, database := dataDir(t), postgrestest.EmptyURL(t)
	up := raiseUp(t, dir, "--database-url", database)
	require.Equal(t, database, up.DatabaseURL)
	held := asked[client.Reservation](t, up.env, "reserve", "--order", "A-1")
	up.stop(syscall.SIGTERM)

	next := raiseUp(t, dir, "--database-url", database)
	require.Equal(t, up.APIKey, next.APIKey)
	asked[client.Reservation](t, next.env, "renew", held.ID, "--hold-token", *held.HoldToken)
	next.stop(syscall.SIGTERM)

	other := raiseUp(t, dir, "--database-url", postgrestest.EmptyURL(t))
	require.NotEqual(t, up.APIKey, other.APIKey, "another database does not know the key that was kept")
	asked[client.Reservation](t, other.env, "reserve", "--order", "A-1")
	other.stop(syscall.SIGTERM)
	require.NoFileExists(t, filepath.Join(dir, "lock"), "no PostgreSQL of its own")
}

func TestUpIsStoppedWhileItStarts(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	for _, sign := range []string{"lock", "password", "postgres.log"} { // how far it has come
		early := start(t, nil, "up", "--listen", "127.0.0.1:0", "--data-dir", dir)
		require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, sign)); return err == nil }, hang, poll)
		early.signal(syscall.SIGTERM)
		got := early.wait()
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Empty(t, got.stderr)
	}
	raiseUp(t, dir).stop(syscall.SIGTERM)
}

func TestUpShowsCommandsThatWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("some of the commands are for curl, which is not installed")
	}
	dir := dataDir(t)
	up := start(t, nil, "up", "--listen", "127.0.0.1:0", "--data-dir", dir)
	var script []string
	for end := false; !end; {
		line := up.line()
		if command, indented := strings.CutPrefix(line, "    "); indented {
			script = append(script, command)
		}
		end = strings.Contains(line, " doctor ")
	}
	shell := command(t, nil)
	shell.Path, shell.Args = "/bin/sh", []string{"sh", "-e"}
	shell.Stdin = strings.NewReader(strings.Join(script, ""))
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s\n%s", strings.Join(script, ""), out)
	for _, piece := range []string{"Reserved ", "Order G-1001: ", "is bound to service svc-g-1001", "looked at", `"order_id":"G-1002"`, "one owner"} {
		require.Contains(t, string(out), piece)
	}
	up.signal(syscall.SIGTERM)
	require.Equal(t, exitDone, up.wait().code)

	next := start(t, nil, "up", "--listen", "127.0.0.1:0", "--data-dir", dir)
	next.until("the orders of the guide may exist already")
	next.signal(syscall.SIGTERM)
	require.Equal(t, exitDone, next.wait().code)
}

func TestTheGuideSaysWhereTheDataLives(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		up       upCmd
		repeated bool
		says     string
	}{
		"its own":          {upCmd{dataSettings: dataSettings{DataDir: "/srv/a"}}, false, "again. Data: /srv/a; delete it to start over.\n\nIn another terminal:\n"},
		"somebody else's":  {upCmd{databaseSettings: databaseSettings{DatabaseURL: "postgres://db/a"}}, false, "again. Data: the database that was given.\n\nIn another"},
		"a second start":   {upCmd{dataSettings: dataSettings{DataDir: "/srv/a"}}, true, "start over.\nThis is not the first start, so the orders of the guide may exist already: "},
		"and goes on then": {upCmd{dataSettings: dataSettings{DataDir: "/srv/a"}}, true, "the same reservation.\n\nIn another terminal:\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			(&process{stdout: &out}).printGuide(upAnswer{URL: "http://x", APIKey: "alk_x"}, c.up.place(), c.repeated)
			require.Contains(t, out.String(), c.says)
		})
	}
}

func TestNoPlaceForTheDataNamesTheSettings(t *testing.T) {
	t.Parallel()
	for _, err := range []error{fs.ErrPermission, syscall.EROFS} {
		err = elsewhere(fmt.Errorf("create data directory /x: %w", err))
		require.ErrorContains(t, err, "create data directory /x: ")
		require.ErrorContains(t, err, "--data-dir or ALLOCATOR_DATA_DIR")
	}
	require.Equal(t, io.EOF, elsewhere(io.EOF))
	file := write(t, "file", "")
	_, err := keptTokenKeys(filepath.Join(file, "data"))
	require.ErrorContains(t, err, "--data-dir or ALLOCATOR_DATA_DIR")
	if os.Geteuid() == 0 {
		return // root has a place of its own
	}
	got := inProcess(t, nil, "up", "--listen", "127.0.0.1:0")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "HOME is not set: give a directory with --data-dir")
}

func TestUpRefusesInOneSentence(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	otherVersion := dataDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(otherVersion, "pgdata"), 0o711))
	require.NoError(t, os.WriteFile(filepath.Join(otherVersion, "pgdata", "PG_VERSION"), []byte("9.6\n"), 0o600))
	file := write(t, "file", "not a directory")

	for sentence, c := range map[string]struct {
		env  []string
		args []string
		says string
	}{
		"the port is taken":                  {nil, []string{"--listen", taken.Addr().String(), "--data-dir", dataDir(t)}, "choose another address with --listen"},
		"the address is not this machine's":  {nil, []string{"--listen", "192.0.2.1:0", "--data-dir", dataDir(t)}, "choose another address with --listen"},
		"PostgreSQL is not installed":        {[]string{"ALLOCATOR_POSTGRES_BIN=/nonexistent"}, []string{"--data-dir", dataDir(t)}, "install"},
		"PostgreSQL is not where it is said": {nil, []string{"--postgres-bin", "/nonexistent", "--data-dir", dataDir(t)}, "looked in /nonexistent"},
		"the data is of another version":     {nil, []string{"--data-dir", otherVersion}, "was written by version 9.6"},
		"the data directory is a file":       {nil, []string{"--data-dir", file}, "there is a file of that name"},
		"the database does not answer":       {[]string{"ALLOCATOR_DATABASE_URL=postgres://me:hunter2@127.0.0.1:1/a"}, []string{"--data-dir", dataDir(t)}, "cannot be used"},
		"the database's address is none":     {[]string{"ALLOCATOR_DATABASE_URL=mysql:hunter2"}, []string{"--data-dir", dataDir(t)}, "write postgres://"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if !strings.HasPrefix(args[0], "--listen") {
				args = append([]string{"--listen", "127.0.0.1:0"}, args...)
			}
			got := invoke(t, c.env, append([]string{"up"}, args...)...)
			require.Contains(t, []int{exitFailure, exitRetry}, got.code)
			require.Contains(t, got.stderr, c.says)
			require.NotContains(t, got.stderr, "hunter2")
			require.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
			require.Empty(t, got.stdout)
		})
	}
	content, err := os.ReadFile(filepath.Join(otherVersion, "pgdata", "PG_VERSION"))
	require.NoError(t, err)
	require.Equal(t, "9.6\n", string(content))
}

func TestUpNamesTheDirectoryThatCannotBeEntered(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs PostgreSQL as somebody else, who may not be let in")
	}
	closed := dataDir(t)
	require.NoError(t, os.MkdirAll(closed, 0o700))
	got := invoke(t, nil, "up", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(closed, "data"))
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.stderr, "cannot enter "+closed)
	require.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
}
