package main

// reserveMutants are the lines that keep what a reservation promises: one server to one buyer, a bounded walk, one outcome for
// one key, and no refusal while there is something to sell.
var reserveMutants = []mutant{
	{
		"arbiter: held index", "1", core,
		"CREATE UNIQUE INDEX reservations_one_held_per_server", "CREATE INDEX reservations_one_held_per_server",
		races, "TestTheArbiterIsInTheDatabase",
	},
	{
		"occupancy: written by holds", "1", core,
		"CREATE TRIGGER reservations_occupy AFTER INSERT ON reservations FOR EACH ROW EXECUTE FUNCTION reservation_occupies();", "",
		races, "TestStormOnFiveServers|TestPromoteNeverReleaseAndRewrite",
	},
	{
		"judged again under the lock", "1", try,
		"FROM verdict WHERE locked AND against = 0", "FROM verdict WHERE locked",
		races, "TestJudgedAgainUnderTheLock",
	},
	{
		"nothing done without the lock", "1", try,
		"FROM verdict WHERE locked AND against = 0", "FROM verdict WHERE against = 0",
		races, "TestABoundedScan",
	},
	{
		"SKIP LOCKED", "5", try,
		"FROM (SELECT FROM servers WHERE organization_id = $1 AND id = $2 FOR UPDATE SKIP LOCKED) locked", "FROM (SELECT FROM servers WHERE organization_id = $1 AND id = $2 FOR UPDATE) locked",
		races, "TestABoundedScan",
	},
	{
		"judged at once", "1", atOnce,
		"JOIN organizations policy ON policy.id = $1 AND NOT policy.closing` + passesSQL(asked) + `", "JOIN organizations policy ON policy.id = $1 AND NOT policy.closing CROSS JOIN (SELECT $3::jsonb) q WHERE true",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"nothing at once without the lock", "1", atOnce,
		" AND s.id = $2 AND ` + lockedAtOnce + `", " AND s.id = $2",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"at once only where others' commits are seen", "1", atOnce,
		"AND current_setting('transaction_isolation') = 'read committed'", "",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"key asked at once", "5", atOnce,
		"AND NOT EXISTS (SELECT FROM reservations WHERE organization_id = $1 AND idempotency_key = $11)", "AND $11::text IS NOT NULL",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"order line asked at once", "5", atOnce,
		"AND NOT EXISTS (SELECT FROM occupancy WHERE organization_id = $1 AND order_id = $5 AND order_line = $6 AND unit = $7)", "",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"occupancy asked at once", "1", atOnce,
		"AND NOT EXISTS (SELECT FROM occupancy WHERE organization_id = $1 AND server_id = $2)", "",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"siblings at once", "5", atOnce,
		"AND (SELECT CASE WHEN ` + tryKeySQL + ` THEN ` + tryLineSQL + ` ELSE false END)", "AND ($1 || $2 || $3 || $4 || $5::bigint IS NOT NULL)",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"hold limit at once", "5", atOnce,
		"AND ($8::text IS NULL OR policy.hold_limit > ` + openHoldsSQL(\"$8\") + `)", "AND ($8::text IS NULL OR policy.hold_limit > 0)",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"savepoint", "6", try,
		", step{sql: `SAVEPOINT candidate`})", ")",
		races, "TestASavepointPerAttempt|TestFiveLostRacesEndTheWalk",
	},
	{
		"a lost candidate is let go", "6", try,
		"r.later(`ROLLBACK TO SAVEPOINT candidate`)", "",
		races, "TestOneCandidateAtATime",
	},
	{
		"25 scanned", "6", "allocation/secondpass.go",
		"case len(tried) == MaxScanned:", "case len(tried) == MaxScanned+1:",
		races, "TestABoundedScan",
	},
	{
		"5 attempts", "6", "allocation/secondpass.go",
		"case w.attempts == MaxAttempts:", "case w.attempts == MaxAttempts+1:",
		races, "TestFiveLostRacesEndTheWalk",
	},
	{
		"a dead hold is no hold", "10", "allocation/catalog_index.go",
		"for len(x.due) > 0 && x.due[0].until <= now {", "for len(x.due) > 0 && x.due[0].until <= 0 {",
		races, "TestCausesOfNoCapacity|TestOneSideOfTheDeadlineEverywhere",
	},
	{
		"a dead hold is moved aside", "10", try,
		"step{sql: expireDeadHoldSQL, args: []any{try.Organization, server}},", "",
		races, "TestCausesOfNoCapacity",
	},
	{
		"reclaim never waits", "5", try,
		"WHERE organization_id = $1 AND server_id = $2 AND state = 'held' AND expires_at <= clock_timestamp()\n\t\tFOR UPDATE SKIP LOCKED",
		"WHERE organization_id = $1 AND server_id = $2 AND state = 'held' AND expires_at <= clock_timestamp()\n\t\tFOR UPDATE",
		races, "TestTwoReclaimsDoNotWaitForEachOther",
	},
	{
		"try-lock of the key", "7", open,
		"pg_try_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'reserve.key', $1::text, $2::text), 0))", "$2::text IS NOT NULL",
		races, "TestFiveOfOneKeyGiveOneReservation",
	},
	{
		"try-lock of the order line", "7", open,
		"pg_try_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'reserve.line', $1::text, $3::text, $4::text, $5::bigint), 0))", "concat($3::text, $4::text, $5::bigint) IS NOT NULL",
		races, "TestTwoKeysForOneOrderLine",
	},
	{
		"line only with the key in hand", "7", open,
		"CASE WHEN of_key.got THEN", "CASE WHEN of_key.got IS NOT NULL THEN",
		races, "TestLoserOfTheKeyLeavesTheLine",
	},
	{
		"key and line asked again", "7", walk,
		"if outcome, err := w.answerExisting(ctx, existing); outcome != nil || err != nil {\n\t\treturn outcome, err\n\t}\n\tif !w.last", "_ = existing\n\tif !w.last",
		races, "TestAskedAgainBeforeRefusal|TestAskedAgainAfterLockNotGot",
	},
	{
		"key before the switch", "7", walk,
		"w.askKey, w.askSwitch,", "w.askSwitch, w.askKey,",
		races, "TestSwitchOffStrandsNobody",
	},
	{
		"a line's converted service", "7", open,
		"coalesce(o.reservation_id, b.reservation_id)", "o.reservation_id",
		races, "TestOrderLineSoldIsReturned",
	},
	{
		"no_capacity only when nothing fits", "5", "allocation/catalog_overview.go",
		"eligible += k.nFree", "eligible += max(k.nFree-1, 0)",
		races, "TestTwoKindsOfRefusal",
	},
	{
		"the database is read before no_capacity", "5", walk,
		"if w.seen.eligible == 0 && w.catalog.maxAge > 0 {", "if w.seen.eligible == 0 && w.catalog.maxAge < 0 {",
		races, "TestStaleCatalogNeverHidesAFreeServer",
	},
	{
		"news of transactions that were open at the horizon", "5", "store/postgres/catalog_feed.go",
		"changed_by = ANY ($3::text[]::xid8[])", "$3::text[] IS NULL",
		races, "TestCatalogMissesNoLateCommit",
	},
}
