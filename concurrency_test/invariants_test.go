//go:build gates

package concurrency_test

// invariants must hold at every instant; each is one statement and so one snapshot. Any row is a violation.
var invariants = map[string]string{
	"I1 one owner": `SELECT server_id::text FROM (
			SELECT organization_id, server_id FROM reservations WHERE state = 'held'
			UNION ALL SELECT organization_id, server_id FROM bindings WHERE ended_at IS NULL) x
		GROUP BY organization_id, server_id HAVING count(*) > 1`,
	"occupancy is the truth": `SELECT coalesce(o.server_id, x.server_id)::text FROM occupancy o
		FULL JOIN (SELECT organization_id, server_id, id AS reservation_id, NULL::uuid AS binding_id FROM reservations WHERE state = 'held'
			UNION ALL SELECT organization_id, server_id, NULL, id FROM bindings WHERE ended_at IS NULL) x
			ON (o.organization_id, o.server_id) = (x.organization_id, x.server_id)
			AND (o.reservation_id, o.binding_id) IS NOT DISTINCT FROM (x.reservation_id, x.binding_id)
		WHERE o.server_id IS NULL OR x.server_id IS NULL`,
	"I4 decided in time":            `SELECT id::text FROM bindings WHERE decided_at >= hold_expires_at`,
	"I6 one reservation per key":    `SELECT idempotency_key FROM reservations GROUP BY organization_id, idempotency_key HAVING count(*) > 1`,
	"I12 one event per transition":  eventPerTransition,
	"one order line, one server":    `SELECT order_id FROM occupancy WHERE order_id IS NOT NULL GROUP BY organization_id, order_id, order_line, unit HAVING count(*) > 1`,
	"every reservation's decision":  `SELECT r.id::text FROM reservations r WHERE NOT EXISTS (SELECT FROM decisions d WHERE d.organization_id = r.organization_id AND d.id = r.decision_id)`,
	"converted means bound":         `SELECT r.id::text FROM reservations r WHERE (state = 'converted') <> EXISTS (SELECT FROM bindings b WHERE b.organization_id = r.organization_id AND b.reservation_id = r.id)`,
	"I8 the fence grows per server": `SELECT id::text FROM (SELECT id, fence, lag(fence) OVER (PARTITION BY organization_id, server_id ORDER BY created_at, id) AS before FROM reservations WHERE generation = 1) f WHERE fence <= before`,
	"I2 no overlap over all history": `SELECT server_id::text FROM (
			SELECT server_id, since, max(upto) OVER (PARTITION BY organization_id, server_id ORDER BY since, upto
				ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
			FROM (` + ownedSQL + `) o) x
		WHERE since < before`,
	"I2 no instant between hold and binding": `SELECT b.id::text FROM bindings b
		JOIN reservations r ON (r.organization_id, r.id) = (b.organization_id, b.reservation_id)
		WHERE b.since > r.ended_at OR b.server_id <> r.server_id`,
	"I3 a decision has its reservation": `SELECT d.id::text FROM decisions d
		LEFT JOIN reservations r ON (r.organization_id, r.id) = (d.organization_id, d.reservation_id)
		WHERE d.outcome = 'reserved' AND (r.decision_id, r.server_id) IS DISTINCT FROM (d.id, d.server_id)`,
	"I3 a binding has its events": `SELECT b.id::text FROM bindings b
		WHERE b.reservation_id IS NOT NULL AND NOT EXISTS (SELECT FROM events e WHERE e.organization_id = b.organization_id
			AND e.type = 'reservation.converted' AND (e.reservation_id, e.binding_id, e.server_id) = (b.reservation_id, b.id, b.server_id))
		UNION ALL SELECT b.id::text FROM bindings b
		WHERE b.ended_at IS NOT NULL AND NOT EXISTS (SELECT FROM events e WHERE e.organization_id = b.organization_id
			AND e.type = 'binding.ended' AND e.binding_id = b.id)`,
	"I5 no refusal while something fitted": `SELECT id::text FROM decisions
		WHERE outcome = 'no_capacity' AND (body ->> 'eligible')::bigint > 0
			OR cause IN ('servers_taken', 'scan_limit', 'attempt_limit') AND (body ->> 'eligible')::bigint = 0
				AND (body ->> 'skipped')::bigint + (body ->> 'stale')::bigint + (body ->> 'attempts')::bigint = 0
				AND (body ->> 'walks')::bigint <= 1`,
	"I5 no walk passes its limits": `SELECT id::text FROM decisions
		WHERE (body ->> 'attempts')::bigint > 5
			OR (body ->> 'skipped')::bigint + (body ->> 'stale')::bigint + (body ->> 'attempts')::bigint > 25`,
	"I7 nothing ends on the wrong side of its deadline": `SELECT id::text FROM reservations
		WHERE state = 'expired' AND ended_at < expires_at OR state = 'cancelled' AND ended_at >= expires_at`,
	"I7 staff who cancel say why": `SELECT id::text FROM reservations WHERE state = 'cancelled' AND ended_by_kind = 'person' AND end_reason IS NULL`,
	"I10 organizations are apart": `SELECT r.id::text FROM reservations r
		WHERE NOT EXISTS (SELECT FROM servers s WHERE (s.organization_id, s.id) = (r.organization_id, r.server_id))
		UNION ALL SELECT b.id::text FROM bindings b
		WHERE NOT EXISTS (SELECT FROM servers s WHERE (s.organization_id, s.id) = (b.organization_id, b.server_id))
		UNION ALL SELECT b.id::text FROM bindings b WHERE b.reservation_id IS NOT NULL
			AND NOT EXISTS (SELECT FROM reservations r WHERE (r.organization_id, r.id) = (b.organization_id, b.reservation_id))
		UNION ALL SELECT e.id::text FROM events e WHERE e.server_id IS NOT NULL
			AND NOT EXISTS (SELECT FROM servers s WHERE (s.organization_id, s.id) = (e.organization_id, e.server_id))
		UNION ALL SELECT e.id::text FROM events e WHERE e.reservation_id IS NOT NULL
			AND NOT EXISTS (SELECT FROM reservations r WHERE (r.organization_id, r.id) = (e.organization_id, e.reservation_id))`,
	"I14 free, held, bound and out are all": `SELECT organization_id FROM (
			SELECT s.organization_id, count(*) AS every,
				count(*) FILTER (WHERE o.server_id IS NULL AND s.state = 'ready')
				+ count(*) FILTER (WHERE o.reservation_id IS NOT NULL) + count(*) FILTER (WHERE o.binding_id IS NOT NULL)
				+ count(*) FILTER (WHERE o.server_id IS NULL AND s.state <> 'ready') AS parts
			FROM servers s LEFT JOIN occupancy o ON (o.organization_id, o.server_id) = (s.organization_id, s.id)
			GROUP BY s.organization_id) sums
		WHERE every <> parts
		UNION ALL SELECT o.server_id::text FROM occupancy o
		WHERE NOT EXISTS (SELECT FROM servers s WHERE (s.organization_id, s.id) = (o.organization_id, o.server_id))`,
}

const eventPerTransition = `SELECT r.id::text FROM reservations r
	LEFT JOIN (
		SELECT organization_id, reservation_id, count(*) FILTER (WHERE type = 'reservation.held') AS held,
			array_agg(type) FILTER (WHERE type IN ('reservation.expired', 'reservation.cancelled', 'reservation.converted')) AS ended
		FROM event_feed GROUP BY organization_id, reservation_id) e ON (e.organization_id, e.reservation_id) = (r.organization_id, r.id)
	WHERE coalesce(e.held, 0) <> 1 OR e.ended IS DISTINCT FROM CASE WHEN r.state <> 'held' THEN ARRAY['reservation.' || r.state] END`

// ownedSQL is who had which server from when to when, over all history; a hold and its binding are one owner, and a dead
// hold has its server until somebody moves it aside.
const ownedSQL = `SELECT r.organization_id, r.server_id, r.created_at AS since,
		coalesce(CASE r.state WHEN 'converted' THEN b.ended_at ELSE r.ended_at END, 'infinity') AS upto
	FROM reservations r LEFT JOIN bindings b ON (b.organization_id, b.reservation_id) = (r.organization_id, r.id)
	UNION ALL SELECT organization_id, server_id, greatest(created_at, since), coalesce(ended_at, 'infinity') FROM bindings WHERE reservation_id IS NULL`

// stuck is what must not be while somebody sweeps: an auditor of a history looks for it as well.
var stuck = map[string]string{
	"I9 no hold is long past its deadline": `SELECT id::text FROM reservations WHERE state = 'held' AND expires_at < clock_timestamp() - interval '2 minutes'`,
	"I9 nobody stays in a transaction": `SELECT pid::text FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '2 minutes'`,
}

// left is what must not be after a last sweep, when nobody does anything any more.
var left = map[string]string{
	"I9 nothing is held": `SELECT id::text FROM reservations WHERE state = 'held'`,
	"I9 no lock is kept": `SELECT l.pid::text FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
		WHERE l.pid <> pg_backend_pid() AND (l.locktype = 'advisory' OR l.mode IN ('RowShareLock', 'RowExclusiveLock'))`,
	"I9 nobody is in a transaction": `SELECT pid::text FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'`,
}
