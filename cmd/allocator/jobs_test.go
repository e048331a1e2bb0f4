package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
	"allocator/locking"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// The jobs of a running service are what this release declares, and each has run or will.
//
// Requirements: L28, L29, L32, L35.
func TestJobsOfAService(t *testing.T) {
	t.Parallel()
	s := serve(t, postgrestest.URL(t), "--job", "audit_oversell:expected=2m,jitter=1ms")
	asked[client.Organization](t, s.admin(), "orgs", "create", "Acme", "--id", "acme")
	env := s.caller("acme", "operator")
	list := asked[client.JobList](t, env, "jobs", "list")
	require.Equal(t, "pg", list.LockBackend)
	hints := map[string]client.JobHint{}
	for _, job := range list.Items {
		hints[job.ID] = job.Hint
		if job.ID == "audit_oversell" {
			require.Equal(t, []int64{120_000, 1, 130_001}, []int64{job.ExpectedMs, job.JitterMs, job.LockTTLMs})
		}
	}
	require.Equal(t, map[string]client.JobHint{"refresh_flags": "node_local", "audit_oversell": "require_global", "purge_dead": "prefer_global"}, hints)
	require.Eventually(t, func() bool {
		for _, job := range asked[client.JobList](t, env, "jobs", "list").Items {
			if job.ID == "refresh_flags" && job.Runs > 1 && !job.LastFailed {
				return true
			}
		}
		return false
	}, hang, poll)
	got := invoke(t, env, "jobs", "list")
	require.Contains(t, got.stdout, "audit_oversell")
	require.Equal(t, exitNotFound, invoke(t, env, "jobs", "run", "nonsense").code)
	s.end(syscall.SIGTERM)
}

// A server that is held and sold at once, which takes somebody who turns the rules off, is seen in the job, the exit
// code, the order's events and the log, which alone name it.
//
// Requirements: L30.
func TestOversellAuditOfAService(t *testing.T) {
	t.Parallel()
	s := serve(t, postgrestest.URL(t))
	asked[client.Organization](t, s.admin(), "orgs", "create", "Acme", "--id", "acme")
	env := s.caller("acme", "orders,support,operator")
	addServer(t, env, "one")
	run := func() result {
		var got result
		require.Eventually(t, func() bool { // the job's own run at the start may be under way
			got = invoke(t, env, "jobs", "run", "audit_oversell")
			return got.code != exitRetry
		}, hang, poll)
		return got
	}
	require.Equal(t, exitDone, run().code)
	pool := poolOf(t, s.database)
	for _, sql := range []string{
		`INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
			SELECT organization_id, uuid_v7(), id, 'vps-1', 'person', '{"v": 1}' FROM servers`,
		`ALTER TABLE reservations DISABLE TRIGGER USER`,
		`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
				idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
			SELECT organization_id, uuid_v7(), id, 'A-1', '1', 'person', clock_timestamp() + interval '1 hour',
				clock_timestamp() + interval '1 hour', 'k', '', 'test', '{}', '{}', '{"v": 1}', id FROM servers`,
		`ALTER TABLE reservations ENABLE TRIGGER USER`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	got := run()
	require.Equal(t, exitConflict, got.code, got.stderr)
	require.Contains(t, got.stdout, "audit_oversell: FOUND")
	require.Contains(t, got.stderr, "held and sold at once")
	require.NotContains(t, got.stdout+got.stderr, "srv_", "the status is shown to every organization")
	var events int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM events WHERE type = 'server.oversold' AND order_id = 'A-1'`).Scan(&events))
	require.Equal(t, 1, events)
	s.end(syscall.SIGTERM)
	require.Contains(t, s.stderr.String(), `"level":"ERROR","msg":"a server is held and sold at once`)
	require.Contains(t, s.stderr.String(), `"server_id":"srv_`)
}

// finder finds what it is told to.
type finder struct {
	found []postgres.Oversold
	err   error
}

func (f finder) Find(context.Context, string) ([]postgres.Oversold, error) { return f.found, f.err }

func TestOversellAuditTellsNothingFoundFromNotLooked(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	run := func(f finder) error {
		return oversellAudit(f, slog.New(slog.NewTextHandler(&log, nil)))(t.Context())
	}
	require.NoError(t, run(finder{}))
	away := errors.New("away")
	require.Equal(t, away, run(finder{err: away}))
	require.Empty(t, log.String())
	var finding *locking.FindingError
	require.ErrorAs(t, run(finder{found: []postgres.Oversold{{Organization: "acme", ServerID: "srv_1"}, {Organization: "globex", ServerID: "srv_2"}}}), &finding)
	require.NotContains(t, finding.Text, "acme")
	require.Contains(t, log.String(), "organization_id=acme server_id=srv_1")
	require.Contains(t, log.String(), "organization_id=globex server_id=srv_2")
}

// Every purger is called until nothing is left, and one that fails keeps none from its work.
func TestPurgeTakesAll(t *testing.T) {
	t.Parallel()
	left := map[string]int64{"few": 1, "many": 7}
	some := func(name string) purger {
		return purger{name, func(context.Context) (int64, error) {
			n := min(left[name], 3)
			left[name] -= n
			return n, nil
		}}
	}
	away := errors.New("away")
	var log bytes.Buffer
	err := purgeDead([]purger{some("few"), {"broken", func(context.Context) (int64, error) { return 0, away }}, some("many")},
		slog.New(slog.NewTextHandler(&log, nil)))(t.Context())
	require.ErrorIs(t, err, away)
	require.Equal(t, map[string]int64{"few": 0, "many": 0}, left)
	require.Contains(t, log.String(), "of=many count=7")
}
