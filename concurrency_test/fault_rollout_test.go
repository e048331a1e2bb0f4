//go:build gates && unix

package concurrency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

// balancer is a load balancer as there are many: it asks each replica for its readiness all the time, takes turns among
// those that are ready, and sends a request elsewhere if nobody listens.
type balancer struct {
	*httptest.Server

	mu    sync.Mutex
	ready []*daemon
	turn  int
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	b := &balancer{}
	b.Server = httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: b, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)})
	t.Cleanup(b.Close)
	return b
}

// watch lets a replica have requests while it says that it is ready.
func (b *balancer) watch(d *daemon) {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			status, err := d.get("/readyz")
			b.take(d, err == nil && status == http.StatusOK)
			<-time.After(10 * time.Millisecond)
		}
	})
	d.t.Cleanup(func() { stop(); asking.Wait() })
	require.Eventually(d.t, func() bool { return b.has(d) }, patience, 5*time.Millisecond, "it does not become ready")
}

func (b *balancer) take(d *daemon, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := slices.Index(b.ready, d)
	switch {
	case ready && known < 0:
		b.ready = append(b.ready, d)
	case !ready && known >= 0:
		b.ready = slices.Delete(b.ready, known, known+1)
	}
}

func (b *balancer) has(d *daemon) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.ready, d)
}

func (b *balancer) next() *daemon {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return nil
	}
	b.turn++
	return b.ready[b.turn%len(b.ready)]
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		d := b.next()
		if d == nil {
			return nil, errors.New("no replica is ready")
		}
		to, err := url.Parse(d.url)
		if err != nil {
			return nil, err
		}
		r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
		answer, err := http.DefaultTransport.RoundTrip(r)
		if errors.Is(err, syscall.ECONNREFUSED) { // nothing was sent
			b.take(d, false)
			continue
		}
		return answer, err
	}
}

// Two replicas behind a load balancer are restarted one after the other under load, with requests that take seconds on
// their way: none fails, and each process ends in order. Then one is killed: nothing that was acknowledged is lost, and by
// its key each request that got no answer finds out what became of it.
//
// Requirements: R03. Cases: OP-07. Faults: F-C3.
func TestRollingRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manyServers(4000)
	w.exec(`UPDATE servers SET site = 'SLOW' WHERE external_id = '1'`)
	w.session().do(`BEGIN`).do(`SELECT FROM servers WHERE site = 'SLOW' FOR UPDATE`) // so that a request for it waits as long as it may
	b := newBalancer(t)
	begin := func() *daemon {
		d := w.daemon(daemonOptions{more: []string{"--drain-delay", "3s"}})
		b.watch(d)
		return d
	}
	replicas := []*daemon{begin(), begin()}
	api, err := client.New(b.URL, replicas[0].key)
	require.NoError(t, err)
	l := w.visited(4, &counter{api})
	slow := w.slowRequests(b.URL, replicas[0].key)
	l.until(20, toldHeld)

	restarts := 2 * int(number(t, roundsEnv, 1))
	for i := range restarts {
		old := replicas[i%2]
		replicas[i%2] = begin()
		old.signal(syscall.SIGTERM)
		require.Eventually(t, func() bool { return !b.has(old) }, patience, time.Millisecond, "it stays ready")
		require.Zero(t, old.ends())
		l.until(20, toldHeld)
	}
	l.stop()
	for _, answer := range slow() {
		require.Contains(t, answer, `409 `, "each waited, and was answered")
		require.Contains(t, answer, `"contended"`)
	}
	require.Empty(t, l.lost())
	require.Zero(t, l.told(toldNothing)+l.told(toldUnknown)+l.told(toldGone), "%s", l)

	again := w.visited(4, &counter{api})
	again.until(20, toldHeld)
	replicas[0].signal(syscall.SIGKILL)
	again.until(20, toldHeld)
	require.Empty(t, again.lost())
	for _, name := range again.unanswered {
		r, _, err := (&counter{api}).reserve(w.ctx, name)
		require.NoError(t, err)
		require.Equal(t, string(r.ID), one[string](w, `SELECT 'res_' || replace(id::text, '-', '') FROM reservations WHERE idempotency_key = $1`, "key-"+name))
	}
	w.sound()
	t.Logf("tried: %d restarts under load (%s), and one kill (%s)", restarts, l, again)
}

// slowRequests asks for the locked server, one request after the other, until what it returns is called.
func (w *world) slowRequests(at, key string) (answers func() []string) {
	ctx, stop := context.WithCancel(w.ctx)
	var all []string
	var asking sync.WaitGroup
	asking.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, at+"/v1/reservations",
				strings.NewReader(fmt.Sprintf(`{"order_id":"slow-%d","order_line":"1","requirements":{"sites":["SLOW"]}}`, n)))
			if err != nil {
				w.t.Error(err)
				return
			}
			r.Header = http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprint("slow-", n)}, "Prefer": {"wait=3"}}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				all = append(all, err.Error())
				continue
			}
			body, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			all = append(all, fmt.Sprint(answer.StatusCode, " ", string(body)))
		}
	})
	w.t.Cleanup(func() { stop(); asking.Wait() })
	return func() []string {
		stop()
		asking.Wait()
		return all
	}
}
