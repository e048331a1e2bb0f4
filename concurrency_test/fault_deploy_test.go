//go:build gates && unix

package concurrency_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/migrations"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// A migration is killed in its middle, again and again. The next one does the rest, and the service serves.
//
// Cases: OP-01. Faults: F-D2.
func TestMigrationKilled(t *testing.T) {
	t.Parallel()
	path, err := program()
	require.NoError(t, err)
	kills := int(number(t, roundsEnv, 2))
	for n, killed := 0, 0; killed < kills && n < 10*kills; n++ {
		url := postgrestest.EmptyURL(t)
		migrate := func() *exec.Cmd {
			cmd := exec.Command(path, "migrate")
			cmd.Env = append(os.Environ(), "ALLOCATOR_DATABASE_URL="+url)
			return cmd
		}
		first := migrate()
		require.NoError(t, first.Start())
		<-time.After(rand.N(400 * time.Millisecond))
		_ = first.Process.Kill()
		if first.Wait() != nil {
			killed++
		}
		out, err := migrate().CombinedOutput()
		require.NoError(t, err, "%s", out)
		pool, err := postgres.Open(t.Context(), url, postgres.PoolOptions{})
		require.NoError(t, err)
		version, err := migrations.Version(t.Context(), pool)
		require.NoError(t, err)
		require.Equal(t, migrations.Latest(), version)
		require.NoError(t, postgres.CheckServer(t.Context(), pool))
		pool.Close()
	}
	t.Logf("tried: %d migrations killed", kills)
}

// An index of the promises that is being built anew is killed in its middle, which leaves it invalid. The service does
// not start on it, says which it is, and starts once it was built.
//
// Faults: F-D2.
func TestIndexLeftInvalid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(2)
	first := w.held("first").Reservation.ID
	w.exec(`DROP INDEX reservations_one_held_per_server`)
	w.exec(`ALTER TABLE reservations DISABLE TRIGGER USER`)
	w.exec(strings.ReplaceAll(`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
			idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		SELECT organization_id, gen_random_uuid(), server_id, 'twice', order_line, created_by_kind, expires_at, max_expires_at,
			'twice', fingerprint, token_key, requirements, reason, server, decision_id FROM reservations WHERE id = 'ID'`, "ID", rawID(string(first)).String()))
	w.exec(`ALTER TABLE reservations ENABLE TRIGGER USER`)
	const build = `CREATE UNIQUE INDEX CONCURRENTLY reservations_one_held_per_server ON reservations (organization_id, server_id) WHERE state = 'held'`
	_, err := w.pool.Exec(w.ctx, build)
	require.ErrorContains(t, err, "could not create unique index")

	path, err := program()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(w.ctx, 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "ALLOCATOR_HOLD_TOKEN_KEYS="+tokenKeys, "ALLOCATOR_DATABASE_URL="+w.url)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "reservations_one_held_per_server")
	require.Contains(t, string(out), "REINDEX INDEX CONCURRENTLY")

	w.exec(`ALTER TABLE reservations DISABLE TRIGGER USER`)
	w.exec(`DELETE FROM reservations WHERE order_id = 'twice'`)
	w.exec(`ALTER TABLE reservations ENABLE TRIGGER USER`)
	w.exec(`REINDEX INDEX CONCURRENTLY reservations_one_held_per_server`)
	w.daemon(daemonOptions{})
	w.sound()
}

// The next release, which adds to the schema, is rolled out under load: migrated beside the running one, started beside
// it, then alone, and rolled back again. Both serve all the while, nothing that was acknowledged is lost, and the older
// one keeps every rule on the newer schema.
//
// Requirements: R03. Cases: OP-07. Faults: F-D3, F-D4.
func TestRollingUpgradeAndBack(t *testing.T) {
	t.Parallel()
	onlyLong(t)
	next := nextRelease(t)
	w := newWorld(t)
	w.manyServers(4000)
	drain := []string{"--drain-delay", "2s"}
	old := w.daemon(daemonOptions{more: drain})
	l := w.visited(3, old.counter())
	l.until(30, toldHeld)
	cmd := exec.Command(next, "migrate")
	cmd.Env = append(os.Environ(), "ALLOCATOR_DATABASE_URL="+w.url)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	l.until(30, toldHeld) // the old one on the new schema

	newer := w.daemon(daemonOptions{binary: next, more: drain})
	beside := w.visited(3, newer.counter())
	beside.until(30, toldHeld)
	l.until(30, toldHeld)
	old.signal(syscall.SIGTERM)
	require.Zero(t, old.ends())
	l.stop()
	beside.until(30, toldHeld)

	again := w.visited(3, w.daemon(daemonOptions{}).counter()) // rolled back, on the new schema
	again.until(30, toldHeld)
	newer.signal(syscall.SIGTERM)
	require.Zero(t, newer.ends())
	beside.stop()
	again.until(30, toldHeld)
	for _, each := range []*load{l, beside, again} {
		require.Empty(t, each.lost())
		each.requireUnansweredNotBegun()
	}
	w.sound()
	t.Logf("tried: 1 rollout and 1 roll-back under load (%s; %s; %s)", l, beside, again)
}

// nextRelease builds this source with one more migration, which only adds.
func nextRelease(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	copied := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "allocation", "bench", "client", "cmd", "events", "featureflags", "identity", "inventory", "lease", "locking", "migrations", "reservation", "store", "sweeper", "transport"} {
		out, err := exec.Command("cp", "-R", filepath.Join(root, name), copied).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	name := fmt.Sprintf("%05d_next.sql", migrations.Latest()+1)
	require.NoError(t, os.WriteFile(filepath.Join(copied, "migrations", name), []byte(`-- +goose Up
ALTER TABLE servers ADD COLUMN of_the_next_release text;
ALTER TABLE reservations ADD COLUMN of_the_next_release integer NOT NULL DEFAULT 0;
CREATE INDEX of_the_next_release ON reservations (organization_id, created_at);
`), 0o600))
	binary := filepath.Join(t.TempDir(), "allocator")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "./cmd/allocator") // as make build does, whose parts it can use
	build.Dir, build.Env = copied, append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// A backup from before the last reservations is restored. Those are lost, and their keys reserve anew; no fence that was
// given out since comes again, so that whoever is fenced by it refuses what the lost ones still send.
//
// Faults: F-D7.
func TestBackupRestored(t *testing.T) {
	t.Parallel()
	primary := postgrestest.NewNode(t, postgrestest.NodeOptions{})
	w := worldAt(t, primary.URL(), 2000)
	l := w.underLoad(primary.URL(), 2, 2)
	l.until(40, toldHeld)
	restored := primary.Backup("restored")
	l.until(60, toldHeld)
	l.stop()
	w.pool.Close()
	primary.Kill()

	// As a recovery to a point in time does: the server begins a timeline of its own.
	require.NoError(t, os.WriteFile(filepath.Join(restored.DataDir(), "recovery.signal"), nil, 0o600))
	restored.Own("recovery.signal")
	restored.Settle(map[string]string{"restore_command": "false", "recovery_target_action": "promote"})
	restored.Start()
	require.Eventually(t, func() bool {
		pool, err := postgres.Open(w.ctx, restored.URL(), postgres.PoolOptions{})
		if err != nil {
			return false
		}
		defer pool.Close()
		return postgres.CheckServer(w.ctx, pool) == nil
	}, patience, 50*time.Millisecond)
	w.at(restored.URL())
	lost := l.lost()
	require.NotEmpty(t, lost, "nothing was tried")
	name, _, _ := strings.Cut(lost[0], " ")
	again := w.reserve(w.ctx, request(name))
	require.Contains(t, []allocation.OutcomeCode{allocation.OutcomeReserved, allocation.OutcomeReplayed}, again.Code)
	for i := range 200 {
		o := w.reserve(w.ctx, request(fmt.Sprint("after the restore ", i)))
		require.Equal(t, allocation.OutcomeReserved, o.Code)
		l.shown(o.Reservation)
	}
	require.Empty(t, l.fencedTwice, "fences came again")
	w.sound()
	t.Logf("tried: 1 restore of a backup, %d of %d acknowledgements lost with what came after it", len(lost), len(l.acks))
}

// A sweep meets reservations in a state that it does not know, as one of the next release might be. It leaves them as
// they are, whatever their deadline, and sweeps the others.
//
// Faults: F-J6.
func TestSweepLeavesUnknownStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(2)
	unknown, dead := w.held("unknown").Reservation.ID, w.held("dead").Reservation.ID
	w.expire(unknown)
	w.expire(dead)
	w.exec(`DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = 'reservations'::regclass AND contype = 'c' LOOP
			EXECUTE format('ALTER TABLE reservations DROP CONSTRAINT %I', name);
		END LOOP; END $$`)
	w.exec(`INSERT INTO reservation_states VALUES ('parked', true)`)
	w.exec(`ALTER TABLE reservations DISABLE TRIGGER USER`)
	w.exec(`UPDATE reservations SET state = 'parked' WHERE id = $1`, rawID(string(unknown)))
	w.exec(`ALTER TABLE reservations ENABLE TRIGGER USER`)
	require.Equal(t, 1, swept(w, w.ctx, w.reservations))
	w.endedOnce(dead, "expired", "sweep")
	require.Equal(t, "parked", w.state(unknown))
}

// A session keeps an old snapshot while holds come and go, so that nothing of what they leave can be cleaned. Every one
// of them still comes and goes, and when the session is gone so is what they left.
//
// Faults: F-L6.
func TestOldSnapshotIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(3)
	old := w.session().do(`BEGIN ISOLATION LEVEL REPEATABLE READ`).do(`SELECT count(*) FROM reservations`)
	cycles := int(number(t, cyclesEnv, 300))
	d := &desk{w.allocator, w.reservations}
	times := make([]time.Duration, cycles)
	for i := range times {
		began := time.Now()
		r, word, err := d.reserve(w.ctx, fmt.Sprint(i))
		require.NoError(t, err)
		require.Equal(t, toldHeld, word)
		require.NoError(t, d.cancel(w.ctx, r.ID))
		times[i] = time.Since(began)
	}
	w.exec(`VACUUM occupancy`)
	dead := func() int { return one[int](w, `SELECT pg_relation_size('occupancy_one_per_server')::int`) }
	kept := dead()
	require.NotEmpty(t, one[string](w, `SELECT coalesce(string_agg(backend_xmin::text, ' '), '') FROM pg_stat_activity
		WHERE datname = current_database() AND state = 'idle in transaction'`), "what doctor and a monitor look at shows it")
	old.do(`COMMIT`)
	w.exec(`VACUUM occupancy`)
	w.exec(`REINDEX INDEX occupancy_one_per_server`)
	require.LessOrEqual(t, dead(), kept)
	require.Equal(t, allocation.OutcomeReserved, w.held("after").Code)
	w.sound()
	tenth := max(1, cycles/10)
	t.Logf("tried: %d holds and cancellations with an old snapshot kept, %s each in the first tenth and %s in the last", cycles,
		mean(times[:tenth]), mean(times[cycles-tenth:]))
}

// cyclesEnv is how many holds come and go.
const cyclesEnv = "CONCURRENCY_CYCLES"

func mean(times []time.Duration) time.Duration {
	var sum time.Duration
	for _, each := range times {
		sum += each
	}
	return (sum / time.Duration(len(times))).Round(100 * time.Microsecond)
}

// Sixty-four buyers over three services want one server: one gets it, and the others hear honestly why not.
//
// Requirements: R16, R18. Faults: F-L1.
func TestSixtyFourBuyersOfOneServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	counts := w.crowd(64)
	require.Equal(t, 1, counts["reserved"], "%v", counts)
	for answer := range counts {
		require.Contains(t, []string{"reserved", "contended/servers_taken", "no_capacity/all_held"}, answer, "%v", counts)
	}
	require.NotEqual(t, allocation.OutcomeReserved, w.reserve(w.ctx, request("late")).Code)
	w.sound()
}

// Two hundred buyers want a hundred servers, and come again when they are told to: a hundred get one each, and nobody is
// told that there is nothing while something is free.
//
// Requirements: R16, R21, R36. Faults: F-L2.
func TestTwoHundredBuyersOfAHundredServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(100)
	counts := w.crowd(200)
	require.Equal(t, 100, counts["reserved"], "%v", counts)
	require.Equal(t, 100, one[int](w, `SELECT count(*) FROM occupancy`))
	require.Equal(t, 100, counts["no_capacity/all_held"], "%v", counts)
	w.sound()
}

// crowd lets n buyers at three services at once. Who is told to come again does, at most 40 times.
func (w *world) crowd(n int) map[string]int {
	w.t.Helper()
	services := make([]*allocation.Allocator, 3)
	for i := range services {
		services[i], _ = w.replica(w.url)
	}
	outcomes := make([]*allocation.Outcome, n)
	together(n, func(i int) {
		for range 40 {
			o, err := services[i%3].Reserve(w.ctx, w.caller, request(fmt.Sprint("crowd-", i)))
			if err != nil {
				w.t.Errorf("reserve: %v", err)
				return
			}
			if outcomes[i] = o; o.Code != allocation.OutcomeContended {
				return
			}
			<-time.After(rand.N(20 * time.Millisecond))
		}
	})
	require.False(w.t, w.t.Failed())
	return tally(outcomes)
}

// The switch goes on and off every few milliseconds under load. Each request is decided by one value of it: it is
// refused for the switch, or goes through; nothing fails, and what exists is converted and cancelled all the while.
//
// Faults: F-D5.
func TestSwitchFlickers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manyServers(2000)
	l := w.underLoad(w.url, 3, 2)
	rounds := int(number(t, roundsEnv, 2))
	for range 20 * rounds {
		w.release.turn(false)
		<-time.After(rand.N(50 * time.Millisecond))
		w.release.turn(true)
		<-time.After(rand.N(50 * time.Millisecond))
	}
	l.until(10, toldHeld)
	require.Empty(t, l.lost())
	require.NotZero(t, l.told(string(allocation.OutcomeFeatureDisabled)), "%s", l)
	require.Zero(t, l.told(toldNothing)+l.told(toldUnknown), "%s", l)
	w.sound()
	t.Logf("tried: %d turns of the switch (%s)", 40*rounds, l)
}
