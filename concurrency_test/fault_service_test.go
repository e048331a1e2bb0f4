//go:build gates && unix

package concurrency_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/store/postgres/postgrestest"
)

// Asked to stop under load, the service finishes what it began: every caller gets an answer or was not let in, nothing
// that was acknowledged is lost, no transaction is left open, and it ends in order.
//
// Requirements: R03. Cases: OP-07. Faults: F-C3.
func TestServiceAskedToStopUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manyServers(2000)
	d := w.daemon(daemonOptions{more: []string{"--drain-delay", "2s"}}) // in which each connection is told that it is the last
	l := w.visited(6, d.counter())
	l.until(40, toldHeld)
	d.signal(syscall.SIGTERM)
	require.Zero(t, d.ends())
	l.until(1, toldNothing)
	require.Empty(t, l.lost())
	l.requireUnansweredNotBegun()
	require.Eventually(t, func() bool {
		return one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'allocator'`) == 0
	}, patience, 10*time.Millisecond, "it left sessions behind")
	w.sound()
}

// The service gets no more memory, in the middle of its work, and dies of it. What it acknowledged is there, and a new
// one goes on.
//
// Requirements: R03. Faults: F-C10.
func TestServiceOutOfMemory(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("prlimit is not installed")
	}
	w := newWorld(t)
	w.manyServers(2000)
	d := w.daemon(daemonOptions{})
	l := w.visited(6, d.counter())
	l.until(30, toldHeld)
	out, err := exec.Command("prlimit", "--pid", fmt.Sprint(d.cmd.Process.Pid), "--as=1").CombinedOutput()
	require.NoError(t, err, "%s", out)
	more := w.visited(200, d.counter()) // more than it has memory for
	require.NotZero(t, d.ends())
	more.stop()
	dump, err := os.ReadFile(d.wrote)
	require.NoError(t, err)
	require.True(t, bytes.Contains(dump, []byte("memory")), "it ended of something else: %.400s", dump)
	again := w.visited(2, w.daemon(daemonOptions{}).counter())
	again.until(5, toldHeld)
	again.stop()
	require.Empty(t, l.lost())
	w.sound()
}

// With 64 file descriptors, and thousands of callers that hang up in the middle, the service refuses some and recovers:
// afterwards it serves as before, no transaction stays open, and its goroutines are as many as before.
//
// Faults: F-S3.
func TestServiceWithFewFileDescriptors(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("prlimit is not installed")
	}
	w := newWorld(t)
	w.manyServers(50)
	d := w.daemon(daemonOptions{before: []string{"prlimit", "--nofile=64:64"}})
	l := w.visited(1, d.counter())
	l.until(3, toldHeld)
	l.stop()
	aborted := int(number(t, abortsEnv, 600))
	together(60, func(i int) {
		for range aborted / 60 {
			d.hangUp(fmt.Sprint(i))
		}
	})
	require.Eventually(t, func() bool {
		status, err := d.get("/readyz")
		return err == nil && status == http.StatusOK
	}, patience, 20*time.Millisecond, "it does not recover")
	after := w.visited(2, d.counter())
	after.until(10, toldHeld)
	after.stop()
	require.Zero(t, after.told("failed"), "%v", after.failures)
	require.Eventually(t, func() bool {
		return one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`) == 0
	}, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return d.descriptors() < 40 }, 3*patience, 50*time.Millisecond, "descriptors stay open")
	d.signal(syscall.SIGQUIT) // which makes a Go program tell all its goroutines
	require.NotZero(t, d.ends())
	dump, err := os.ReadFile(d.wrote)
	require.NoError(t, err)
	goroutines := bytes.Count(dump, []byte("\ngoroutine "))
	require.NotZero(t, goroutines)
	require.Less(t, goroutines, 150, "goroutines stay behind")
	w.sound()
	t.Logf("tried: %d calls that hung up, 64 descriptors, %d goroutines in the end", aborted, goroutines)
}

// abortsEnv is how many callers hang up.
const abortsEnv = "CONCURRENCY_ABORTS"

// hangUp sends a request and is gone before the answer.
func (d *daemon) hangUp(name string) {
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(d.url, "http://"), patience)
	if err != nil {
		return
	}
	body := fmt.Sprintf(`{"order_id":"hang-up-%s","order_line":"1"}`, name)
	_, _ = fmt.Fprintf(conn, "POST /v1/reservations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Idempotency-Key: hang-up-%s\r\nContent-Length: %d\r\n\r\n%s", d.key, name, len(body), body)
	_ = conn.Close()
}

// descriptors counts its open files; where the system does not tell, there are none.
func (d *daemon) descriptors() int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	return len(entries)
}

// Nobody reads what the service logs, and the pipe is full. It goes on selling, and holds no lock meanwhile.
//
// Faults: F-S4.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manyServers(2000)
	unread, log, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = unread.Close()
		_ = log.Close()
	})
	d := w.daemon(daemonOptions{log: log, more: []string{"--log-level", "debug"}})
	l := w.visited(6, d.counter())
	l.until(150, toldHeld) // with two calls each and some 400 bytes for a call, more than a pipe takes
	require.Zero(t, one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'
		AND state_change < clock_timestamp() - interval '5 seconds'`))
	require.Empty(t, l.lost())
	d.signal(syscall.SIGTERM)
	require.Zero(t, d.ends(), "it does not end, with its log unread")
	w.sound()
}

// Callers that are refused come again at once, all of them and without pause. The service says when to come again, not
// the same to all; it answers everybody; and when the storm is over it serves as before.
//
// Faults: F-L4.
func TestRetryStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manyServers(2)
	d := w.daemon(daemonOptions{})
	var mu sync.Mutex
	pauses, statuses := map[string]int{}, map[int]int{}
	ctx, cancel := context.WithTimeout(w.ctx, time.Duration(number(t, roundsEnv, 3))*time.Second)
	defer cancel()
	api := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	together(60, func(i int) {
		for n := 0; ctx.Err() == nil; n++ {
			status, pause := d.order(api, fmt.Sprintf("storm-%d-%d", i%4, n))
			mu.Lock()
			statuses[status]++
			pauses[pause]++
			mu.Unlock()
		}
	})
	for status, count := range statuses {
		require.Contains(t, []int{200, 201, 409, 503}, status, "%d times: %v", count, statuses)
	}
	require.Greater(t, len(pauses), 2, "everybody is told to come again at the same time: %v", pauses)
	w.exec(`UPDATE reservations SET expires_at = clock_timestamp() WHERE state = 'held'`)
	require.Eventually(t, func() bool {
		status, _ := d.order(api, "after the storm")
		return status == http.StatusCreated || status == http.StatusOK
	}, 10*time.Second, 20*time.Millisecond, "it does not recover")
	w.sound()
	t.Logf("tried: 60 callers without a pause, answers %v", statuses)
}

// order sends an order and returns the status and when to come again.
func (d *daemon) order(api *http.Client, name string) (status int, pause string) {
	body := fmt.Sprintf(`{"order_id":%q,"order_line":"1"}`, name)
	r, err := http.NewRequestWithContext(d.ctx, http.MethodPost, d.url+"/v1/reservations", strings.NewReader(body))
	if err != nil {
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+d.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", strings.ReplaceAll(name, " ", "-"))
	answer, err := api.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode, answer.Header.Get("Retry-After")
}

// Hundreds of clients send a byte now and then, in their headers or their bodies, and others never read their answers.
// Everybody else is served meanwhile, and the slow ones are cut off.
//
// Faults: F-N4.
func TestManySlowClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manyServers(200)
	d := w.daemon(daemonOptions{})
	slow := int(number(t, slowEnv, 60))
	begun := make([]net.Conn, slow)
	for i := range begun {
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		begun[i] = conn
		text := "POST /v1/reservations HTTP/1.1\r\nHost: x\r\nAuthor"
		if i%2 == 0 {
			text = "POST /v1/reservations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + d.key +
				"\r\nContent-Type: application/json\r\nIdempotency-Key: slow\r\nContent-Length: 1000\r\n\r\n{"
		}
		_, err = conn.Write([]byte(text))
		require.NoError(t, err)
	}
	l := w.visited(4, d.counter())
	l.until(30, toldHeld)
	l.stop()
	require.Zero(t, l.told(toldUnknown)+l.told(toldNothing), "%s", l)
	cut, latest := 0, time.Now().Add(4*patience) // against hanging alone
	for _, conn := range begun {                 // each was bounded from its beginning on
		for {
			require.True(t, time.Now().Before(latest), "only %d of %d slow clients were cut off", cut, slow)
			_ = conn.SetDeadline(time.Now().Add(time.Second))
			if _, err := conn.Write([]byte(" ")); err != nil {
				break
			}
			answer := make([]byte, 4096)
			n, err := conn.Read(answer)
			if n > 0 || err != nil && !os.IsTimeout(err) {
				break
			}
		}
		cut++
	}
	require.Equal(t, slow, cut)
	w.sound()
	t.Logf("tried: %d slow clients, all of them cut off, %s beside them", slow, l)
}

// slowEnv is how many clients are slow.
const slowEnv = "CONCURRENCY_SLOW"

// Processes that start at once on an empty database, each told to migrate it, all come to serve: one does it, the
// others wait for that.
//
// Cases: OP-01. Faults: F-D1.
func TestServicesThatMigrateAtOnce(t *testing.T) {
	t.Parallel()
	path, err := program()
	require.NoError(t, err)
	rounds := int(number(t, roundsEnv, 1))
	for range rounds {
		url := postgrestest.EmptyURL(t)
		dir := t.TempDir()
		together(3, func(i int) {
			out, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = out.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, "serve", "--migrate", "--listen", "127.0.0.1:0", "--json")
			cmd.Env = append(os.Environ(), "ALLOCATOR_HOLD_TOKEN_KEYS="+tokenKeys, "ALLOCATOR_DATABASE_URL="+url, "ALLOCATOR_MAX_CONNS=4")
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			serves := func() bool {
				text, _ := os.ReadFile(out.Name())
				return bytes.Contains(text, []byte(`"url"`))
			}
			for !serves() && ctx.Err() == nil && cmd.ProcessState == nil {
				<-time.After(20 * time.Millisecond)
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil || !serves() {
				text, _ := os.ReadFile(out.Name())
				t.Errorf("process %d: %v\n%s", i, err, text)
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("tried: %d empty databases, 3 processes each", rounds)
}
