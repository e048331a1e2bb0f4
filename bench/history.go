package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A history is what years of selling leave behind: reservations that have ended, their events and decisions, in the
// months in which they were made. It is written as the product would have left it, but in bulk, without the triggers that
// bring a reservation to its end; the constraints hold, and what the rows say about each other is the same.

// historyBatch is how many reservations one statement writes.
const historyBatch = 20_000

// prepareHistory makes the months of the past, and keeps a hundred thousand servers at most as they are frozen beside.
var prepareHistory = []string{
	`DO $$ -- as make_month_partitions does it for the months to come
	DECLARE
		parent text;
		month  timestamptz;
	BEGIN
		FOREACH parent IN ARRAY '{events, decisions, decision_lists}'::text[] LOOP
			FOR back IN 1..13 LOOP
				month := date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - make_interval(months => back);
				EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
					parent || to_char(month AT TIME ZONE 'UTC', '_YYYY_MM'), parent,
					uuid_v7_floor(month), uuid_v7_floor(month + interval '1 month'));
			END LOOP;
		END LOOP;
	END $$`,
	`CREATE UNLOGGED TABLE bench_frozen AS
		SELECT row_number() OVER () - 1 AS n, s.id, freeze_server(s) AS frozen FROM servers s ORDER BY hashtext(s.id::text) LIMIT 100000`,
	`ALTER TABLE bench_frozen ADD PRIMARY KEY (n)`,
	`ANALYZE bench_frozen`,
}

// uuidAt is a UUIDv7 of an instant.
const uuidAt = `(substr(uuid_v7_floor(at)::text, 1, 14) || '7' || substr(gen_random_uuid()::text, 16))::uuid`

// historySQL writes the reservations number $2 to $3 of $4, evenly over the year before yesterday: seven of ten expired,
// two were cancelled, one was sold to a service that has ended. A decision is one that this run has seen made.
const historySQL = `WITH times AS (
		SELECT n, clock_timestamp() - interval '1 day' - (1 - n::float8 / $4) * interval '360 days' AS at
		FROM generate_series($2::bigint, $3::bigint) n
	), h AS MATERIALIZED (
		SELECT times.n, at, at + interval '15 minutes' AS until, ` + uuidAt + ` AS id, ` + uuidAt + ` AS decision,
			nextval('reservation_fence') AS fence, f.id AS server, f.frozen,
			CASE times.n % 10 WHEN 0 THEN 'converted' WHEN 1 THEN 'cancelled' WHEN 2 THEN 'cancelled' ELSE 'expired' END AS state
		FROM times JOIN bench_frozen f ON f.n = times.n % (SELECT count(*) FROM bench_frozen)
	), pattern AS MATERIALIZED (
		SELECT d AS decision FROM decisions d WHERE organization_id = $1 AND outcome = 'reserved' ORDER BY id DESC LIMIT 1
	), decided AS (
		INSERT INTO decisions SELECT d.*
		FROM h, pattern, jsonb_populate_record(pattern.decision, jsonb_build_object(
			'id', h.decision, 'created_at', at, 'order_id', 'history-' || n, 'reservation_id', id, 'server_id', server,
			'fence', fence, 'expires_at', until)) d
	), bound AS (
		INSERT INTO bindings (organization_id, id, server_id, service_id, reservation_id, order_id, order_line, unit, since, created_at,
			created_by_kind, decided_at, hold_expires_at, server, fence, ended_at, ended_by_kind, version)
		SELECT $1, h.id, h.server, 'history-' || n, h.id, 'history-' || n, '1', 1, at + interval '5 minutes', at + interval '5 minutes',
			'key', at + interval '5 minutes', until, frozen, fence, at + interval '12 hours', 'person', 2
		FROM h WHERE state = 'converted'
	), told AS (
		INSERT INTO events (organization_id, id, type, at, actor_kind, reservation_id, binding_id, server_id, order_id, decision_id)
		SELECT $1, ` + uuidAt + `, 'reservation.' || state, at, 'key', id, CASE state WHEN 'converted' THEN id END, server, 'history-' || n, decision
		FROM (SELECT n, at + interval '5 minutes' AS at, id, server, decision, state FROM h) e
	)
	INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, customer_ref, state, created_at, created_by_kind,
		expires_at, max_expires_at, ended_at, ended_by_kind, fence, version, idempotency_key, fingerprint, token_key, requirements,
		reason, server, decision_id)
	SELECT $1, id, server, 'history-' || n, '1', 'customer-' || n % 100000, state, at, 'key',
		until, at + interval '1 hour', CASE state WHEN 'expired' THEN until ELSE at + interval '5 minutes' END,
		CASE state WHEN 'expired' THEN 'sweep' ELSE 'key' END, fence, 2, 'history-' || n, sha256(n::text::bytea), 'bench',
		'{"memory": {"mib_min": 65536}}', '{"code": "chosen", "rank": 1, "text": "Of the servers that fit, it was the smallest."}', frozen,
		decision
	FROM h`

// fillHistory writes n ended reservations with everything that belongs to them.
func fillHistory(ctx context.Context, admin *pgxpool.Pool, n int, tell func(done int)) error {
	for _, sql := range prepareHistory {
		if _, err := admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("prepare a history: %w", err)
		}
	}
	conn, err := admin.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SET session_replication_role = replica`); err != nil {
		return fmt.Errorf("a history is written without triggers, for which the database's user must be a superuser: %w", err)
	}
	for from := 1; from <= n && err == nil; from += historyBatch {
		tell(from)
		_, err = conn.Exec(ctx, historySQL, org, from, min(n, from+historyBatch-1), n)
	}
	_, resetErr := conn.Exec(context.WithoutCancel(ctx), `RESET session_replication_role`)
	if err := errors.Join(err, resetErr); err != nil {
		return fmt.Errorf("write a history of %d reservations: %w", n, err)
	}
	_, err = admin.Exec(ctx, `VACUUM (ANALYZE) reservations, bindings, events, decisions, decision_lists`)
	return err
}

// withHistory measures once more when the tables hold a history, which is written beside the last inventory alone.
func (r *run) withHistory(ctx context.Context, w *world, conditions Table) error {
	if r.History == 0 || conditions.Servers != r.Servers[len(r.Servers)-1] {
		return nil
	}
	if err := w.warm(ctx, nextRound()); err != nil { // so that there is a decision
		return err
	}
	err := fillHistory(ctx, r.admin, r.History, func(done int) {
		r.tell(r.done, r.total, fmt.Sprintf("writing a history: %d of %d reservations", done, r.History))
	})
	if err != nil {
		return err
	}
	if err := w.reset(ctx); err != nil {
		return err
	}
	conditions.History = r.History
	for _, callers := range r.Callers {
		conditions.Callers = callers
		for _, compared := range r.comparisons()[:2] {
			if err := r.measure(ctx, w, compared, conditions); err != nil {
				return err
			}
		}
	}
	return nil
}
