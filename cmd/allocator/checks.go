package main

// check is one statement that finds what must not be; each row it gives names one thing in one text.
type check struct {
	ID     string // of the invariant; empty where it is no invariant but what keeps them
	Name   string // what holds if the statement finds nothing
	SQL    string
	Remedy string // what to do about what it finds
}

// The reservations, decisions and events that a statement below looks at are those of the last 390 days: decisions are
// kept for 400 days, so an older reservation may rightly have none any more.
const kept = ` r.created_at > clock_timestamp() - interval '390 days'`

// contact is the remedy for what no database of this product should ever show.
const contact = "Stop selling these servers (state maintenance), keep a backup of the database as it is, and report it: no operation of the product leads here."

// saleChecks are the promises, as far as one statement can see them broken.
var saleChecks = []check{
	{"I1", "one owner: a server has at most one hold or active binding", `
			SELECT 'server ' || server_id FROM (
				SELECT organization_id, server_id FROM reservations WHERE state = 'held'
				UNION ALL SELECT organization_id, server_id FROM bindings WHERE ended_at IS NULL) x
			GROUP BY organization_id, server_id HAVING count(*) > 1`, contact},
	{
		"I1", "occupancy says what reservations and bindings say", `
			SELECT 'server ' || coalesce(o.server_id, x.server_id) FROM occupancy o
			FULL JOIN (
				SELECT organization_id, server_id, id AS reservation_id, NULL::uuid AS binding_id FROM reservations WHERE state = 'held'
				UNION ALL SELECT organization_id, server_id, NULL, id FROM bindings WHERE ended_at IS NULL) x
				ON (o.organization_id, o.server_id) = (x.organization_id, x.server_id)
				AND (o.reservation_id, o.binding_id) IS NOT DISTINCT FROM (x.reservation_id, x.binding_id)
			WHERE o.server_id IS NULL OR x.server_id IS NULL`,
		"Somebody wrote these tables with the triggers off. " + contact,
	},
	{"I6", "one order line has at most one server", `
			SELECT 'order ' || order_id || ', line ' || order_line || ', unit ' || unit FROM occupancy WHERE order_id IS NOT NULL
			GROUP BY organization_id, order_id, order_line, unit HAVING count(*) > 1`, contact},
	{"I1", "one service has at most one active binding", `
			SELECT 'service ' || service_id FROM bindings WHERE ended_at IS NULL
			GROUP BY organization_id, service_id HAVING count(*) > 1`, contact},
	{"I2", "converted means bound, and bound by conversion means converted", `
			SELECT 'reservation ' || r.id FROM reservations r
			WHERE (r.state = 'converted') <> EXISTS (
				SELECT FROM bindings b WHERE b.organization_id = r.organization_id AND b.reservation_id = r.id)`, contact},
	{"I4", "every conversion was decided before the deadline", `
			SELECT 'binding ' || id FROM bindings WHERE decided_at >= hold_expires_at`, contact},
	{"I7", "nothing expired before its deadline", `
			SELECT 'reservation ' || id FROM reservations WHERE state = 'expired' AND ended_at < expires_at`, contact},
	{"I6", "one key made one reservation", `
			SELECT 'key ' || idempotency_key FROM reservations GROUP BY organization_id, idempotency_key HAVING count(*) > 1`, contact},
	{"I8", "the fence of a server only grows", `
			SELECT 'reservation ' || id FROM (
				SELECT id, fence, lag(fence) OVER (PARTITION BY organization_id, server_id ORDER BY created_at, id) AS before
				FROM reservations WHERE generation = 1) f
			WHERE fence <= before`, contact},
	{"I7", "staff who cancelled said why", `
			SELECT 'reservation ' || id FROM reservations WHERE state = 'cancelled' AND ended_by_kind = 'person' AND end_reason IS NULL`, contact},
	{"I3", "every reservation has the decision that made it", `
			SELECT 'reservation ' || r.id FROM reservations r
			WHERE` + kept + ` AND NOT EXISTS (
				SELECT FROM decisions d WHERE d.organization_id = r.organization_id AND d.id = r.decision_id)`, contact},
	{"I12", "every transition has exactly one event", `
			SELECT 'reservation ' || r.id FROM reservations r
			LEFT JOIN (
				SELECT organization_id, reservation_id, count(*) FILTER (WHERE type = 'reservation.held') AS held,
					array_agg(type) FILTER (
						WHERE type IN ('reservation.expired', 'reservation.cancelled', 'reservation.converted')) AS ended
				FROM event_feed GROUP BY organization_id, reservation_id) e
				ON (e.organization_id, e.reservation_id) = (r.organization_id, r.id)
			WHERE` + kept + ` AND (coalesce(e.held, 0) <> 1
				OR e.ended IS DISTINCT FROM CASE WHEN r.state <> 'held' THEN ARRAY['reservation.' || r.state] END)`, contact},
	{"I5", "no refusal said there was nothing while something fitted", `
			SELECT 'decision ' || id FROM decisions
			WHERE id > uuid_v7_floor(clock_timestamp() - interval '30 days') AND (
				outcome = 'no_capacity' AND (body ->> 'eligible')::bigint > 0
				OR cause IN ('servers_taken', 'scan_limit', 'attempt_limit') AND (body ->> 'eligible')::bigint = 0
					AND (body ->> 'skipped')::bigint + (body ->> 'stale')::bigint + (body ->> 'attempts')::bigint = 0
					AND (body ->> 'walks')::bigint <= 1)`, contact},
	{"I5", "no walk passed its limits of 25 candidates and 5 attempts", `
			SELECT 'decision ' || id FROM decisions
			WHERE id > uuid_v7_floor(clock_timestamp() - interval '30 days') AND (
				(body ->> 'attempts')::bigint > 5
				OR (body ->> 'skipped')::bigint + (body ->> 'stale')::bigint + (body ->> 'attempts')::bigint > 25)`, contact},
	{"I10", "organizations are apart: whatever names a server or a reservation names one of its own", `
			SELECT 'reservation ' || r.id FROM reservations r
			WHERE NOT EXISTS (SELECT FROM servers s WHERE s.organization_id = r.organization_id AND s.id = r.server_id)
			UNION ALL SELECT 'binding ' || b.id FROM bindings b
			WHERE NOT EXISTS (SELECT FROM servers s WHERE s.organization_id = b.organization_id AND s.id = b.server_id)
			UNION ALL SELECT 'binding ' || b.id FROM bindings b
			WHERE b.reservation_id IS NOT NULL AND NOT EXISTS (
				SELECT FROM reservations r WHERE r.organization_id = b.organization_id AND r.id = b.reservation_id)`, contact},
	{"I14", "free, held, bound and out add up to all servers", `
			SELECT 'organization ' || organization_id FROM (
				SELECT s.organization_id, count(*) AS every,
					count(*) FILTER (WHERE o.server_id IS NULL AND s.state = 'ready')
					+ count(*) FILTER (WHERE o.reservation_id IS NOT NULL) + count(*) FILTER (WHERE o.binding_id IS NOT NULL)
					+ count(*) FILTER (WHERE o.server_id IS NULL AND s.state <> 'ready') AS parts
				FROM servers s LEFT JOIN occupancy o ON (o.organization_id, o.server_id) = (s.organization_id, s.id)
				GROUP BY s.organization_id) sums
			WHERE every <> parts
			UNION ALL SELECT 'occupied server ' || o.server_id FROM occupancy o
			WHERE NOT EXISTS (SELECT FROM servers s WHERE s.organization_id = o.organization_id AND s.id = o.server_id)`, contact},
}
