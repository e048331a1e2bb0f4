package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// pgbenchScript is the limit as PostgreSQL's own load generator runs it: a check that the limit is not made slow by the
// driver. Its servers are numbered in a table, of which each client takes every n-th.
const pgbenchScript = `\set i :i + 1
\set n :i * :clients + :client_id
WITH free AS (SELECT id FROM servers WHERE organization_id = 'bench' AND id = (SELECT id FROM bench_free WHERE n = :n)
	FOR UPDATE SKIP LOCKED)
INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
	idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
SELECT 'bench', gen_random_uuid(), id, 'ROUND' || id, '1', 'key', clock_timestamp() + interval '1 day',
	clock_timestamp() + interval '1 day', 'ROUND' || id, '\x00', 'k', '{}', '{}', '{"v": 1}', id FROM free;
`

var (
	pgbenchDone = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	pgbenchRate = regexp.MustCompile(`tps = ([0-9.]+)`)
)

// pgbench runs the limit by another program; found tells whether it is here.
func (w *world) pgbench() (c *contender, found bool) {
	program, err := findPgbench()
	if err != nil {
		return nil, false
	}
	var round string
	most := min(w.most(), int(w.duration.Seconds()*pgbenchPace))
	return &contender{
		name: "pgbench", most: most,
		prepare: func(ctx context.Context, r string) error {
			round = r
			_, err := w.admin.Exec(ctx, `CREATE TABLE IF NOT EXISTS bench_free (n bigint PRIMARY KEY, id uuid NOT NULL)`)
			if err == nil {
				_, err = w.admin.Exec(ctx, `TRUNCATE bench_free`)
			}
			if err == nil {
				_, err = w.admin.Exec(ctx, `INSERT INTO bench_free SELECT n - 1, id FROM unnest($1::uuid[]) WITH ORDINALITY AS f (id, n)`,
					w.servers.free[:min(len(w.servers.free), most+1000)])
			}
			return err
		},
		alone: func(ctx context.Context, callers int) (int, time.Duration, error) {
			clients := min(callers, int(w.pool.Config().MaxConns))
			return w.runPgbench(ctx, program, round, clients, max(1, most/clients))
		},
	}, true
}

// pgbenchPace is how many transactions for each second of a turn it is given, since it ends by their number.
const pgbenchPace = 2000

func (w *world) runPgbench(ctx context.Context, program, round string, clients, each int) (int, time.Duration, error) {
	dir, err := os.MkdirTemp("", "allocator-pgbench-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	script := filepath.Join(dir, "limit.sql")
	if err := os.WriteFile(script, bytes.ReplaceAll([]byte(pgbenchScript), []byte("ROUND"), []byte(round)), 0o600); err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, program, "-n", "-M", "prepared", "-c", strconv.Itoa(clients), //nolint:gosec // found on this machine
		"-j", strconv.Itoa(min(clients, 2)), "-t", strconv.Itoa(each), "-D", "i=-1", "-D", "clients="+strconv.Itoa(clients), "-f", script)
	cmd.Env = append(os.Environ(), libpq(w.pool.Config().ConnConfig)...)
	output, err := cmd.CombinedOutput()
	done, rate := pgbenchDone.FindSubmatch(output), pgbenchRate.FindSubmatch(output)
	if err != nil || done == nil || rate == nil {
		return 0, 0, errors.Join(ctx.Err(), fmt.Errorf("pgbench did not end well: %w\n%s", err, output))
	}
	n, _ := strconv.Atoi(string(done[1]))
	perSecond, _ := strconv.ParseFloat(string(rate[1]), 64)
	return n, time.Duration(float64(n) / perSecond * float64(time.Second)), nil
}

// libpq says where the database is without showing the password to whoever lists processes.
func libpq(c *pgx.ConnConfig) []string {
	return []string{
		"PGHOST=" + c.Host, "PGPORT=" + strconv.Itoa(int(c.Port)), "PGDATABASE=" + c.Database,
		"PGUSER=" + c.User, "PGPASSWORD=" + c.Password,
	}
}

// findPgbench looks in PATH and where Debian keeps it.
func findPgbench() (string, error) {
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		return "", errors.New("pgbench is not installed")
	}
	return found[len(found)-1], nil
}
