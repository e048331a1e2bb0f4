//go:build gates && unix

package concurrency_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// replicated is a primary and a standby that streams from it.
func replicated(t *testing.T, settings map[string]string) (primary, standby *postgrestest.Node) {
	t.Helper()
	primary = postgrestest.NewNode(t, postgrestest.NodeOptions{})
	return primary, primary.Standby("standby", settings)
}

// synchronous makes the primary wait for the standby of that name from now on.
func (w *world) synchronous(name string) {
	w.t.Helper()
	w.exec(`ALTER SYSTEM SET synchronous_standby_names = '` + name + `'`)
	w.exec(`SELECT pg_reload_conf()`)
	require.Eventually(w.t, func() bool {
		return one[string](w, `SELECT current_setting('synchronous_standby_names')`) == name
	}, patience, 10*time.Millisecond)
}

// inStep waits until a standby of the state streams.
func (w *world) inStep(state string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return one[bool](w, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1)`, state)
	}, patience, 10*time.Millisecond, "no %s standby", state)
}

// requireLoss asserts what the service says at its start that a take-over may lose.
func requireLoss(w *world, want string) {
	w.t.Helper()
	said, err := postgres.LossOnTakeOver(w.ctx, w.pool)
	require.NoError(w.t, err)
	require.Equal(w.t, want == "", said == "", said)
	require.Contains(w.t, said, want)
}

// An asynchronous standby takes over under load, in a moment in which it lags: what was acknowledged since then is
// lost, and counted; docs/operations.md declares it. The clients find the new primary by themselves, every invariant
// holds on what is there, and no fence that the old primary gave out is given out again.
//
// Faults: F-F1.
func TestAsynchronousStandbyTakesOver(t *testing.T) {
	t.Parallel()
	primary, standby := replicated(t, nil)
	w := worldAt(t, primary.URL(), 2000)
	w.inStep("async")
	requireLoss(w, "the standby is asynchronous")
	l := w.underLoad(postgrestest.URLOf(primary, standby), 3, 3)
	l.until(50, toldHeld)
	standby.Stop() // it lags, as one that is busy, or behind a slow network
	l.until(40, toldSold)
	w.pool.Close()
	primary.Kill()
	standby.Start()
	standby.Promote()
	l.until(50, toldHeld)
	w.at(standby.URL())
	lost := l.lost()
	w.sound()
	require.Empty(t, l.fencedTwice, "fences of the old primary came again")
	require.NotEmpty(t, lost, "the standby did not lag: nothing was tried")
	t.Logf("tried: 1 take-over of an asynchronous standby, %d of %d acknowledgements lost, as declared (%s)", len(lost), len(l.acks), l)
}

// A synchronous standby takes over under load: nothing that was acknowledged is lost. A service that runs on is asked all
// the while: it says that it is unavailable, and when to come again, and nothing else; then it serves from the new primary
// without a failure, and without having been started anew.
//
// Requirements: R03. Cases: OP-03. Faults: F-F2.
func TestSynchronousStandbyTakesOver(t *testing.T) {
	t.Parallel()
	primary, standby := replicated(t, nil)
	w := worldAt(t, primary.URL(), 4000)
	w.synchronous("standby")
	w.inStep("sync")
	requireLoss(w, "")
	w.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = remote_write', current_database()); END $$`)
	w.pool.Reset()
	requireLoss(w, "synchronous_commit is remote_write")
	w.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET synchronous_commit', current_database()); END $$`)
	w.pool.Reset()
	both := postgrestest.URLOf(primary, standby)
	d := w.daemon(daemonOptions{env: []string{"ALLOCATOR_DATABASE_URL=" + both}})
	l := w.underLoad(both, 3, 3)
	asked := d.askedAllTheWhile()
	l.until(40, toldSold)
	w.pool.Close()
	primary.Kill()
	standby.Promote()
	l.until(50, toldHeld)
	served := 0
	require.Eventually(t, func() bool { // thirty in a row, over every connection that it has
		if status, _ := d.order(http.DefaultClient, fmt.Sprint("after-", served)); status != http.StatusCreated {
			served = 0
			return false
		}
		served++
		return served == 30
	}, patience, time.Millisecond, "it does not recover")
	w.at(standby.URL())
	answers := asked()
	for answer := range answers {
		require.Regexp(t, `^(200|201) $|^503 .`, answer, "%v", answers)
	}
	require.Empty(t, l.lost(), "acknowledged, and gone")
	w.sound()
	t.Logf("tried: 1 take-over of a synchronous standby, %d acknowledgements, none lost (%s); a service answered %v", len(l.acks), l, answers)
}

// askedAllTheWhile sends orders one after the other until what it returns is called, which counts the answers: status and
// Retry-After.
func (d *daemon) askedAllTheWhile() (stop func() map[string]int) {
	ctx, cancel := context.WithCancel(d.ctx)
	answers := map[string]int{}
	var asking sync.WaitGroup
	asking.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			status, pause := d.order(http.DefaultClient, fmt.Sprint("asked-", n))
			answers[fmt.Sprint(status, " ", pause)]++
		}
	})
	stop = sync.OnceValue(func() map[string]int {
		cancel()
		asking.Wait()
		return answers
	})
	d.t.Cleanup(func() { stop() })
	return stop
}

// With its synchronous standby down the primary acknowledges nothing: a caller hears that the outcome is unknown, and
// no reservation is kept in silence without the standby. When it is back, all goes on, and the key tells the outcome.
//
// Requirements: R03. Faults: F-F2, F-F6.
func TestNothingIsAcknowledgedWithoutTheSynchronousStandby(t *testing.T) {
	t.Parallel()
	primary, standby := replicated(t, nil)
	w := worldAt(t, primary.URL(), 20)
	w.synchronous("standby")
	w.inStep("sync")
	held := w.held("before").Reservation
	standby.Stop()

	short, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	_, err := w.allocator.Reserve(short, w.caller, request("during"))
	require.ErrorIs(t, err, reservation.ErrOutcomeUnknown)
	short, cancel = context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	_, err = w.reservations.Convert(short, w.caller, held.ID, "", "service")
	require.ErrorIs(t, err, reservation.ErrOutcomeUnknown)

	standby.Start()
	w.inStep("sync")
	require.False(t, w.reserve(w.ctx, request("during")).Refused(), "the key finds it, or makes it")
	converted, err := w.reservations.Convert(w.ctx, w.caller, held.ID, "", "service")
	require.NoError(t, err)
	require.Equal(t, held.ID, converted.Reservation.ID)
	w.sound()
}

// The wait for a standby is cut off by somebody who may do that: the server then calls the commit done, with a warning
// that the standby may not have it. The caller is not told that it is.
//
// Requirements: R03. Faults: F-F6.
func TestCommitWhoseWaitForTheStandbyIsCutOff(t *testing.T) {
	t.Parallel()
	for _, means := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		t.Run(means, func(t *testing.T) {
			t.Parallel()
			w := worldAt(t, postgrestest.NewNode(t, postgrestest.NodeOptions{}).URL(), 3)
			other := w.open(w.url, 1)
			w.synchronous("nosuch")
			done := make(chan error, 1)
			go func() {
				_, err := w.allocator.Reserve(w.ctx, w.caller, request("cut off"))
				done <- err
			}()
			require.Eventually(t, func() bool {
				var waiting bool
				err := other.QueryRow(w.ctx, `SELECT coalesce(bool_or(`+means+`(pid)), false) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`).Scan(&waiting)
				return err == nil && waiting
			}, patience, 5*time.Millisecond, "nobody waits for a standby")
			require.ErrorIs(t, receive(w, done), reservation.ErrOutcomeUnknown)
		})
	}
}

// The old primary comes back beside the new one, and takes writes: it does not know better. Whoever has seen the new
// one does not go back to it, whatever the order of addresses.
//
// Faults: F-F3.
func TestOldPrimaryComesBack(t *testing.T) {
	t.Parallel()
	primary, standby := replicated(t, nil)
	w := worldAt(t, primary.URL(), 4000)
	w.inStep("async")
	both := postgrestest.URLOf(primary, standby) // the old one first
	l := w.underLoad(both, 2, 2)
	l.until(30, toldHeld)
	w.pool.Close()
	primary.Kill()
	standby.Promote()
	l.until(30, toldHeld)
	primary.Start()
	old := worldOf(t, primary.URL())
	before := one[int](old, `SELECT count(*) FROM reservations`)
	standby.Immediate() // so that all connections are made anew, with the old primary there
	standby.Start()
	l.until(30, toldHeld)
	w.at(standby.URL())
	l.stop()
	require.Equal(t, before, one[int](old, `SELECT count(*) FROM reservations`), "somebody wrote to the old primary")
	w.sound()
}

// worldOf looks at a database that has its organization already.
func worldOf(t *testing.T, url string) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), release: &release{}}
	w.caller = tester
	w.at(url)
	return w
}

// A standby that is seconds behind decides nothing: the service does not start on it, and one that finds itself on it
// says that it cannot tell, instead of selling or refusing by what was true a while ago.
//
// Faults: F-F5.
func TestStandbyDecidesNothing(t *testing.T) {
	t.Parallel()
	primary, standby := replicated(t, map[string]string{"recovery_min_apply_delay": "1h"})
	w := worldAt(t, primary.URL(), 1)
	behind := worldOf(t, standby.URL())
	require.ErrorIs(t, postgres.CheckServer(w.ctx, behind.pool), postgres.ErrReadOnly)
	require.ErrorIs(t, postgres.NewHealth(behind.pool).Ready(w.ctx), postgres.ErrReadOnly)
	held := w.held("a").Reservation
	for deed, do := range deeds {
		if deed == "sweep" {
			continue
		}
		require.ErrorIs(t, do(w.ctx, behind.allocator, behind.reservations, held.ID), reservation.ErrUnavailable, deed)
	}
	w.sound()
}
