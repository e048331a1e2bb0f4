//go:build gates && unix

package concurrency_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/client"
	"allocator/reservation"
)

// builtIn is where this process builds the program; see TestMain.
var builtIn string

// program builds `allocator` once, as its users run it.
var program = sync.OnceValues(func() (string, error) {
	var err error
	if builtIn, err = os.MkdirTemp("", "allocator-faults-"); err != nil {
		return "", err
	}
	path := filepath.Join(builtIn, "allocator")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "allocator/cmd/allocator").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// daemon is `allocator serve` as a process of its own.
type daemon struct {
	*world
	cmd   *exec.Cmd
	url   string
	key   string
	ended chan struct{} // closed when it has ended
	wrote string        // the file that its log goes to; empty if that goes elsewhere
}

// daemonOptions settle how it runs.
type daemonOptions struct {
	binary string   // default: the program as it is built here
	before []string // words before its command
	more   []string // flags
	log    *os.File // where its log goes; default a file
	env    []string
}

// daemon starts one over the world's database, with a key that may do everything to servers.
func (w *world) daemon(o daemonOptions) *daemon {
	w.t.Helper()
	path, err := program()
	require.NoError(w.t, err)
	d := &daemon{world: w, ended: make(chan struct{})}
	w.cli("flags", "set", "reservations", "100")
	var key client.CreatedKey
	require.NoError(w.t, json.Unmarshal(w.cli("keys", "create", "load", "--org", string(org), "--scope", "checkout,orders,support,operator", "--json"), &key))
	d.key = key.Key
	words := append(append([]string{}, o.before...), cmp.Or(o.binary, path), "serve", "--listen", "127.0.0.1:0", "--json")
	words = append(words, o.more...)
	d.cmd = exec.Command(words[0], words[1:]...)
	d.cmd.Env = append(append(os.Environ(), "ALLOCATOR_HOLD_TOKEN_KEYS="+tokenKeys, "ALLOCATOR_DATABASE_URL="+w.url), o.env...)
	if o.log == nil {
		d.wrote = filepath.Join(w.t.TempDir(), "log")
		o.log, err = os.Create(d.wrote)
		require.NoError(w.t, err)
		w.t.Cleanup(func() { _ = o.log.Close() })
	}
	d.cmd.Stderr = o.log
	output, err := d.cmd.StdoutPipe()
	require.NoError(w.t, err)
	d.run()
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(w.t, err, "it does not serve: %s", d.log())
	var answer struct {
		URL string `json:"url"`
	}
	require.NoError(w.t, json.Unmarshal([]byte(line), &answer))
	d.url = answer.URL
	return d
}

// run starts the process from a thread that lives as long as it does: its death would be the process's.
func (d *daemon) run() {
	d.t.Helper()
	d.cmd.SysProcAttr = dieWithUs()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(d.ended)
		err := d.cmd.Start()
		started <- err
		if err == nil {
			_ = d.cmd.Wait() // how it ended is in ProcessState
		}
	}()
	require.NoError(d.t, <-started)
	d.t.Cleanup(func() {
		d.signal(syscall.SIGKILL)
		<-d.ended
		if d.t.Failed() {
			d.t.Logf("the service wrote:\n%s", d.log())
		}
	})
}

func (d *daemon) signal(s syscall.Signal) { _ = d.cmd.Process.Signal(s) } // it may have ended

// ends waits for it to end by itself and returns its exit code.
func (d *daemon) ends() int {
	d.t.Helper()
	select {
	case <-d.ended:
		return d.cmd.ProcessState.ExitCode()
	case <-time.After(2 * patience):
		require.FailNow(d.t, "the service does not end")
		return -1
	}
}

// log is the end of what it wrote.
func (d *daemon) log() string {
	text, _ := os.ReadFile(d.wrote)
	return string(text[max(0, len(text)-8000):])
}

// cli runs a command of the program on the world's database.
func (w *world) cli(args ...string) []byte {
	w.t.Helper()
	path, err := program()
	require.NoError(w.t, err)
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "ALLOCATOR_DATABASE_URL="+w.url)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		require.FailNow(w.t, "a command failed", "%v: %s", args, exit.Stderr)
	}
	require.NoError(w.t, err)
	return out
}

// get asks a path that needs no key.
func (d *daemon) get(path string) (status int, err error) {
	r, err := http.NewRequestWithContext(d.ctx, http.MethodGet, d.url+path, nil)
	if err != nil {
		return 0, err
	}
	answer, err := (&http.Client{Timeout: patience}).Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// counter is the daemon's shop, as a customer reaches it.
type counter struct{ api *client.ClientWithResponses }

func (d *daemon) counter() *counter {
	d.t.Helper()
	api, err := client.New(d.url, d.key)
	require.NoError(d.t, err)
	return &counter{api}
}

func (c *counter) reserve(ctx context.Context, name string) (*reservation.Reservation, string, error) {
	answer, err := c.api.CreateReservationWithResponse(ctx, &client.CreateReservationParams{IdempotencyKey: "key-" + name},
		client.ReservationRequest{OrderID: "order-" + name, OrderLine: "1"})
	if err != nil {
		return nil, string(client.CodeOf(err)), toldOverHTTP(err)
	}
	got := answer.JSON201
	if got == nil {
		got = answer.JSON200
	}
	return &reservation.Reservation{ID: reservation.ID(got.ID), Fence: got.Fence}, toldHeld, nil
}

func (c *counter) convert(ctx context.Context, id reservation.ID, service string) error {
	_, err := c.api.ConvertReservationWithResponse(ctx, string(id), &client.ConvertReservationParams{}, client.ConvertRequest{ServiceID: service})
	return toldOverHTTP(err)
}

func (c *counter) cancel(ctx context.Context, id reservation.ID) error {
	_, err := c.api.CancelReservationWithResponse(ctx, string(id), &client.CancelReservationParams{}, client.CancelRequest{ReasonCode: "other"})
	return toldOverHTTP(err)
}

// toldOverHTTP says in the domain's words what an answer says, or that none came. Refusals are no errors.
func toldOverHTTP(err error) error {
	switch code := client.CodeOf(err); {
	case err == nil, code == "contended", code == "no_capacity":
		return nil
	case code == "unavailable":
		return reservation.ErrUnavailable
	case code == "outcome_unknown":
		return reservation.ErrOutcomeUnknown
	case code != "":
		return err
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(err.Error(), "too many open files"):
		return reservation.ErrUnavailable // nothing was sent
	default: // something was sent, and no answer came
		return reservation.ErrOutcomeUnknown
	}
}
