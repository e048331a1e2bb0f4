//go:build unix

package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/client"
	"allocator/locking/redistest"
	"allocator/store/postgres/postgrestest"
)

// replica is one of several processes over one database, and how to call it.
type replica struct {
	*served
	api *client.ClientWithResponses
	env []string
}

// withAcme is a database with one organization.
func withAcme(t *testing.T) string {
	t.Helper()
	database := postgrestest.URL(t)
	asked[client.Organization](t, []string{"ALLOCATOR_DATABASE_URL=" + database}, "orgs", "create", "Acme", "--id", "acme")
	return database
}

func startReplica(t *testing.T, database string, flags ...string) *replica {
	t.Helper()
	r := &replica{served: serve(t, database, flags...)}
	r.env = r.caller("acme", "operator,platform")
	var err error
	r.api, err = client.New(r.url, r.env[1][len("ALLOCATOR_API_KEY="):])
	require.NoError(t, err)
	return r
}

func (r *replica) job(id string) client.Job {
	r.t.Helper()
	list, err := r.api.ListJobsWithResponse(r.t.Context())
	require.NoError(r.t, err)
	for _, job := range list.JSON200.Items {
		if job.ID == id {
			return job
		}
	}
	require.FailNow(r.t, "no such job", id)
	return client.Job{}
}

func (r *replica) eventually(what string, is func() bool) {
	r.t.Helper()
	require.Eventually(r.t, is, hang, poll, what)
}

// endlessPurge makes the job purge_dead go on and on, until the function that is returned is called.
func endlessPurge(t *testing.T, database string) (end func()) {
	t.Helper()
	pool := poolOf(t, database)
	run := func(sql string) {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	const dead = `INSERT INTO locks (organization_id, key, token, fence, expires_at, changed_at)
		VALUES ('acme', 'dead', '', 1, '-infinity', clock_timestamp() - interval '1 week')`
	run(`CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM pg_sleep(0.02); ` + dead + ` ON CONFLICT DO NOTHING; RETURN NULL; END $$`)
	run(dead)
	run(`CREATE TRIGGER again AFTER DELETE ON locks FOR EACH STATEMENT EXECUTE FUNCTION again()`)
	return func() { run(`DROP TRIGGER again ON locks`) }
}

// sharedLocks are flags under which processes share the lock of the job; a lock lives for 2 s where it has a time.
func sharedLocks(t *testing.T, backend string) []string {
	t.Helper()
	flags := []string{"--lock-backend", backend, "--lock-margin", "1s", "--job", "purge_dead:hint=require_global,expected=999ms,jitter=1ms"}
	if backend == "redis" {
		flags = append(flags, "--lock-redis-url", redistest.URL(t), "--lock-redis-key-prefix", "test:"+rand.Text()+":")
	}
	return flags
}

// Two real processes over one database: a job that runs on one does not run on the other, by its ticks or when asked,
// until the first is killed in the middle of it. Without the lock, the control, it runs on both.
//
// Requirements: L24, L29, L30, L31, L36, L37.
func TestTwoReplicasAndAJob(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"pg", "redis"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			database := withAcme(t)
			end := endlessPurge(t, database)
			flags := sharedLocks(t, backend)
			first := startReplica(t, database, flags...)
			first.eventually("it runs at its start", func() bool { return first.job("purge_dead").Running })
			second := startReplica(t, database, flags...)
			second.eventually("its tick is the other's", func() bool { return second.job("purge_dead").Skips > 0 })
			got := invoke(t, second.env, "jobs", "run", "purge_dead")
			require.Equal(t, exitRetry, got.code, got.stderr)
			require.Contains(t, got.stderr, "(job_running)")
			require.Zero(t, second.job("purge_dead").Runs)

			first.signal(syscall.SIGKILL)
			end()
			second.eventually("the dead one's lock ends", func() bool { return invoke(t, second.env, "jobs", "run", "purge_dead").code == exitDone })
			require.Positive(t, second.job("purge_dead").Runs)
		})
	}
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		database := withAcme(t)
		end := endlessPurge(t, database)
		flags := []string{"--job", "purge_dead:hint=node_local,jitter=1ms"}
		for _, r := range []*replica{startReplica(t, database, flags...), startReplica(t, database, flags...)} {
			r.eventually("each runs it", func() bool { return r.job("purge_dead").Runs > 0 })
		}
		end()
	})
}

// A process that is paused for longer than its lock lives has lost it when it wakes up, and says so; with pg, whose
// locks have no time, it still has it.
//
// Requirements: L05, L06, L14, L22, L37.
func TestPausedReplica(t *testing.T) {
	t.Parallel()
	for backend, loses := range map[string]bool{"redis": true, "pg": false} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			database := withAcme(t)
			end := endlessPurge(t, database)
			flags := sharedLocks(t, backend)
			paused := startReplica(t, database, flags...)
			paused.eventually("it runs at its start", func() bool { return paused.job("purge_dead").Running })
			other := startReplica(t, database, flags...)
			paused.signal(syscall.SIGSTOP)
			end()
			run := func() int {
				_, err := other.api.RunJobWithResponse(t.Context(), "purge_dead")
				if err == nil {
					return http.StatusOK
				}
				require.Equal(t, client.ProblemCodeJobRunning, client.CodeOf(err), err)
				return http.StatusConflict
			}
			if loses {
				other.eventually("the lock ends by its time", func() bool { return run() == http.StatusOK })
			} else {
				require.Equal(t, http.StatusConflict, run())
			}
			paused.signal(syscall.SIGCONT)
			paused.eventually("its run ends", func() bool { return !paused.job("purge_dead").Running })
			if loses {
				paused.eventually("it is told", func() bool { return paused.job("purge_dead").LocksLost == 1 })
				return
			}
			require.Zero(t, paused.job("purge_dead").LocksLost)
			other.eventually("the lock is free", func() bool { return run() == http.StatusOK })
		})
	}
}

// A lock of another program, over two real processes: either renews and releases what the other gave, a process that is
// killed takes no lock with it, and who slept through the end of a lock is refused where it writes.
//
// Requirements: L02, L03, L07, L08, L27, L37, L38. Cases: LE-01.
func TestTwoReplicasAndALockOfAnotherProgram(t *testing.T) {
	t.Parallel()
	database := withAcme(t)
	first, second := startReplica(t, database), startReplica(t, database)
	ctx := t.Context()
	const key = "machine:42:bmc/power"

	// 1. Taken through one, it is in everybody's way at the other, which renews it.
	lock := asked[client.Lock](t, first.env, "locks", "acquire", key, "--ttl", "1h")
	got := invoke(t, second.env, "locks", "acquire", key)
	require.Equal(t, exitRetry, got.code, got.stderr)
	require.Contains(t, got.stderr, "(lock_held)")
	renewed := asked[client.Lock](t, second.env, "locks", "renew", key, lock.Token, "--ttl", "2h")
	require.Equal(t, []any{lock.Token, lock.Fence}, []any{renewed.Token, renewed.Fence})

	// 2. The process that gave it is killed; the lock stays, and the other releases it.
	first.signal(syscall.SIGKILL)
	require.Equal(t, exitRetry, invoke(t, second.env, "locks", "acquire", key).code)
	require.Equal(t, exitDone, invoke(t, second.env, "locks", "release", key, lock.Token).code)
	got = invoke(t, second.env, "locks", "release", key, lock.Token)
	require.Equal(t, exitConflict, got.code, got.stderr)
	require.Contains(t, got.stderr, "(lock_lost)")

	// 3. A holder sleeps through the end of its lock; meanwhile another has it, and sees to the server.
	addServer(t, second.env, "one")
	servers, err := second.api.ListServersWithResponse(ctx, &client.ListServersParams{})
	require.NoError(t, err)
	set := func(state client.ServerState, fence int64) error {
		_, err := second.api.SetServerStateWithResponse(ctx, servers.JSON200.Items[0].ID, nil, client.ServerStateRequest{
			State: state, Reason: "power", Lock: client.LockProof{Key: key, Fence: fence},
		})
		return err
	}
	sleeper := asked[client.Lock](t, second.env, "locks", "acquire", key, "--ttl", "50ms")
	var awake client.Lock
	second.eventually("the lock ends by its time", func() bool {
		taken, err := second.api.AcquireLockWithResponse(ctx, client.LockRequest{Key: key, TTLMs: time.Hour.Milliseconds()})
		if err != nil {
			require.Equal(t, client.ProblemCodeLockHeld, client.CodeOf(err), err)
			return false
		}
		awake = *taken.JSON201
		return true
	})
	require.Greater(t, awake.Fence, sleeper.Fence)
	require.NoError(t, set(client.ServerStateMaintenance, awake.Fence))
	require.Equal(t, client.ProblemCodeStaleFence, client.CodeOf(set(client.ServerStateReady, sleeper.Fence)))
	require.Equal(t, exitConflict, invoke(t, second.env, "locks", "renew", key, sleeper.Token).code)
	require.Equal(t, exitUsage, invoke(t, second.env, "locks", "renew", key, sleeper.Token, "--ttl", "1500us").code)
	second.end(syscall.SIGTERM)
}

// A configuration under which a job could never run as its hint demands is refused at the start, in words that say what
// to set; a backend that does not answer yet is no reason not to start.
//
// Requirements: L12, L32, L33, L36.
func TestServeRefusesLocksThatCannotWork(t *testing.T) {
	t.Parallel()
	database := postgrestest.URL(t)
	env := []string{testTokenKeys, "ALLOCATOR_DATABASE_URL=" + database}
	for name, c := range map[string]struct {
		flags []string
		says  string
	}{
		"no backend":                {[]string{"--lock-backend", "none"}, `job "audit_oversell" is require_global, and no lock backend that all processes share is configured`},
		"memory":                    {[]string{"--lock-backend", "memory"}, `job "audit_oversell" is require_global`},
		"a backend that is none":    {[]string{"--lock-backend", "etcd"}, `--lock-backend must be one of`},
		"Redis without a URL":       {[]string{"--lock-backend", "redis"}, "redis.url cannot be read"},
		"a pooler":                  {[]string{"--behind-pooler"}, "set ALLOCATOR_LOCK_PG_URL to the address of PostgreSQL itself"},
		"a PostgreSQL URL":          {[]string{"--lock-pg-url", "mysql://x"}, "pg.url cannot be read"},
		"an unknown job":            {[]string{"--job", "audti:hint=node_local"}, "jobs.audti: there is no job of this id"},
		"an unknown hint":           {[]string{"--job", "purge_dead:hint=global"}, "jobs.purge_dead.hint must be one of"},
		"an unknown part of a job":  {[]string{"--job", "purge_dead:ttl=1s"}, `"ttl" is none of hint, expected and jitter`},
		"a time that is none":       {[]string{"--job", "purge_dead:expected=1"}, "missing unit in duration"},
		"a job twice":               {[]string{"--job", "purge_dead:hint=node_local;purge_dead:jitter=1s"}, "purge_dead is given twice"},
		"jitter beyond the next":    {[]string{"--job", "purge_dead:jitter=31m"}, "jitter must be less than half of the interval"},
		"a margin beyond all locks": {[]string{"--lock-margin", "200h"}, "ttl_ms must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invoke(t, env, append([]string{"serve", "--listen", "127.0.0.1:0"}, c.flags...)...)
			require.Equal(t, exitUsage, got.code, got.stderr)
			require.Contains(t, got.stderr, c.says)
		})
	}
	alone := serve(t, database, "--lock-backend", "memory", "--lock-single-node")
	away := serve(t, database, "--lock-backend", "redis", "--lock-redis-url", "redis://me:hunter2@127.0.0.1:1", "--job", "audit_oversell:jitter=1ms")
	for _, s := range []*served{alone, away} {
		s.end(syscall.SIGTERM)
		require.NotContains(t, s.stderr.String(), "hunter2")
	}
	require.Contains(t, alone.stderr.String(), "locks are kept in the memory of this process")
}

// Every setting of locks and jobs can be given in the environment, and a secret in it is not shown.
//
// Requirements: L36.
func TestLockSettingsAreShown(t *testing.T) {
	t.Parallel()
	got := settings(t, map[string]string{
		"ALLOCATOR_LOCK_BACKEND": "redis", "ALLOCATOR_LOCK_REDIS_URL": "redis://me:hunter2@cache:6379/0", "ALLOCATOR_LOCK_REDIS_KEY_PREFIX": "acme:",
		"ALLOCATOR_LOCK_PG_URL": "postgres://me:hunter2@db/allocator", "ALLOCATOR_JOBS": "purge_dead:hint=node_local;audit_oversell:expected=5m",
	})
	for name, value := range map[string]string{
		"ALLOCATOR_LOCK_BACKEND": "redis", "ALLOCATOR_LOCK_REDIS_URL": "redis://me:xxxxx@cache:6379/0", "ALLOCATOR_LOCK_REDIS_KEY_PREFIX": "acme:",
		"ALLOCATOR_LOCK_PG_URL": "postgres://me:xxxxx@db/allocator", "ALLOCATOR_LOCK_MARGIN": "10s", "ALLOCATOR_LOCK_PG_MAX": "20",
		"ALLOCATOR_LOCK_SINGLE_NODE": "false", "ALLOCATOR_JOBS": fmt.Sprint([]string{"purge_dead:hint=node_local", "audit_oversell:expected=5m"}),
	} {
		require.Equal(t, value, got[name][0], name)
	}
}
