package main

import "strings"

// guardChecks look at what keeps the promises: the database's own rules, its settings, and the periodic jobs.
var guardChecks = []check{
	{
		"", "every unique index that arbitrates is there and valid", `
			SELECT 'index ' || wanted.name || CASE WHEN i.indexrelid IS NULL THEN ' is missing' ELSE ' is invalid' END FROM
				unnest(` + textArray(arbiters) + `) AS wanted (name)
				LEFT JOIN pg_index i ON i.indexrelid = to_regclass(wanted.name) AND i.indisunique
			WHERE i.indexrelid IS NULL OR NOT i.indisvalid OR NOT i.indisready
			UNION ALL SELECT 'index ' || indexrelid::regclass || ' is invalid' FROM pg_index
			WHERE NOT indisvalid AND indexrelid::regclass::text <> ALL (` + textArray(arbiters) + `)
				AND indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)`,
		"Do not sell without it. REINDEX INDEX CONCURRENTLY the invalid one; a missing one comes back with the migration that made it.",
	},
	{
		"", "every trigger that holds a rule is there and on", `
			SELECT 'trigger ' || wanted.name || CASE WHEN t.oid IS NULL THEN ' is missing' ELSE ' is off on ' || t.tgrelid::regclass END
			FROM unnest(` + textArray(triggers) + `) AS wanted (name)
				LEFT JOIN pg_trigger t ON t.tgname = wanted.name AND NOT t.tgisinternal
					AND t.tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
			WHERE t.oid IS NULL OR t.tgenabled NOT IN ('O', 'A')`,
		"ALTER TABLE … ENABLE TRIGGER turns one on again; then run this command again, since rows may have been written meanwhile.",
	},
	{
		"", "the table of states is the one this release was built for", `
			SELECT 'state ' || coalesce(s.state, wanted.state) FROM reservation_states s
			FULL JOIN (VALUES ('held', true), ('converted', false), ('expired', false), ('cancelled', false)) AS wanted (state, holds)
				USING (state)
			WHERE s.holds_server IS DISTINCT FROM wanted.holds`,
		"Run the release of allocator that belongs to this schema.",
	},
	{
		"I3", "what was acknowledged survives a crash: synchronous_commit, fsync and full_page_writes are on", `
			SELECT name || ' is ' || setting FROM pg_settings
			WHERE name IN ('synchronous_commit', 'fsync', 'full_page_writes') AND setting = 'off'`,
		"Set it to on in postgresql.conf, or with ALTER DATABASE or ALTER ROLE where it was turned off.",
	},
	{
		"", "the months ahead have partitions", `
			SELECT 'partition ' || parent || suffix FROM
				unnest(ARRAY ['events', 'decisions', 'decision_lists']) AS parent,
				unnest(ARRAY [clock_timestamp(), clock_timestamp() + interval '1 month']) AS at,
				to_char(at AT TIME ZONE 'UTC', '_YYYY_MM') AS suffix
			WHERE to_regclass(parent || suffix) IS NULL`,
		"SELECT make_month_partitions(3) makes them; a running service does it each day.",
	},
	{
		"", "no row fell into a default partition", `
			SELECT 'events_default' WHERE EXISTS (SELECT FROM events_default)
			UNION ALL SELECT 'decisions_default' WHERE EXISTS (SELECT FROM decisions_default)
			UNION ALL SELECT 'decision_lists_default' WHERE EXISTS (SELECT FROM decision_lists_default)`,
		"Nothing is lost, but these rows keep their month's partition from being made. Move them: DETACH the default partition, make the month, insert them again.",
	},
	{
		"I9", "nothing is due and unswept for more than 2 minutes", `
			SELECT 'reservation ' || id || ', due since ' || expires_at FROM reservations
			WHERE state = 'held' AND expires_at < clock_timestamp() - interval '2 minutes'`,
		"No sale is lost: the allocator moves them aside by itself. But no service is sweeping: is `allocator serve` running, and what does its log say?",
	},
	{
		"I9", "the sweep is not stuck", `
			SELECT 'job ' || id || ' is running since ' || attempted_at FROM river_job
			WHERE state = 'running' AND kind = 'sweep_reservations' AND attempted_at < clock_timestamp() - interval '5 minutes'
			UNION ALL SELECT 'queue ' || name || ' is paused since ' || paused_at FROM river_queue WHERE paused_at IS NOT NULL`,
		"A stuck job is rescued by any running service; a paused queue is resumed in River's console.",
	},
	{
		"I9", "no transaction is open for more than 5 minutes", `
			SELECT 'backend ' || pid || ' (' || application_name || ', ' || state || ') since ' || xact_start FROM pg_stat_activity
			WHERE datname = current_database() AND xact_start < clock_timestamp() - interval '5 minutes' AND backend_type = 'client backend' AND application_name <> 'pg_dump'`,
		"It may keep servers locked and tables from being cleaned. Look at what it is; SELECT pg_terminate_backend(pid) ends it.",
	},
}

// arbiters are the unique indexes on which the promises rest.
var arbiters = []string{
	"reservations_one_held_per_server", "reservations_one_per_key",
	"bindings_one_active_per_server", "bindings_one_active_per_service", "bindings_one_per_reservation",
	"occupancy_one_per_server", "occupancy_one_per_order_line",
}

// triggers are the rules that the database holds by itself; a test compares the list with a fresh schema.
var triggers = []string{
	"servers_are_kept", "servers_are_kept_all", "servers_identity_fixed", "servers_note_change",
	"reservations_start_held", "reservations_identity_fixed", "reservations_reason_frozen", "reservations_final_is_final",
	"reservations_fence_grows", "reservations_held_are_kept", "reservations_sold_are_kept", "reservations_are_kept",
	"reservations_occupy", "reservations_vacate", "reservations_converted_has_binding", "reservations_note_change",
	"bindings_start_active", "bindings_identity_fixed", "bindings_end_once", "bindings_active_are_kept",
	"bindings_of_reservations_are_kept", "bindings_are_kept",
	"bindings_occupy", "bindings_vacate", "bindings_reservation_converted", "bindings_note_change",
	"occupancy_by_triggers_only", "occupancy_is_kept",
	"events_are_final", "decisions_are_final", "decision_lists_are_final",
	"events_are_kept", "decisions_are_kept", "decision_lists_are_kept",
	"organizations_are_kept", "organizations_are_kept_all", "organizations_identity_fixed",
	"api_keys_revocation_final", "api_keys_rights_fixed",
	"audit_is_final", "audit_is_kept_for_its_time", "audit_is_kept", "locks_fence_grows",
	"leases_version_grows",
}

// textArray writes words of this file as an SQL array.
func textArray(words []string) string { return "ARRAY ['" + strings.Join(words, "', '") + "']" }
