package main

// mutant is one line taken out, and the test that must see it.
type mutant struct {
	name    string
	promise string // number in section 2 of the design; "-" for a rule beside them
	file    string
	without string // stands exactly once in file
	with    string
	pkg     string
	test    string
}

const (
	core  = "migrations/00001_core.sql"
	try   = "store/postgres/reservations_try.go"
	open  = "store/postgres/reservations_open.go"
	deeds = "store/postgres/reservations_change.go"
	sales = "store/postgres/reservations_convert.go"
	walk  = "allocation/walk.go"
	races = "concurrency_test"

	lockKeys  = "store/postgres/lockkeys.go"
	redisDoor = "transport/redisport"
)

var mutants = []mutant{
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
		"judged at once", "1", "store/postgres/reservations_atonce.go",
		"JOIN organizations policy ON policy.id = $1 AND NOT policy.closing` + passesSQL(asked) + `", "JOIN organizations policy ON policy.id = $1 AND NOT policy.closing CROSS JOIN (SELECT $3::jsonb) q WHERE true",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"nothing at once without the lock", "1", "store/postgres/reservations_atonce.go",
		" AND s.id = $2 AND ` + lockedAtOnce + `", " AND s.id = $2",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"at once only where others' commits are seen", "1", "store/postgres/reservations_atonce.go",
		"AND current_setting('transaction_isolation') = 'read committed'", "",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"key asked at once", "5", "store/postgres/reservations_atonce.go",
		"AND NOT EXISTS (SELECT FROM reservations WHERE organization_id = $1 AND idempotency_key = $11)", "AND $11::text IS NOT NULL",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"order line asked at once", "5", "store/postgres/reservations_atonce.go",
		"AND NOT EXISTS (SELECT FROM occupancy WHERE organization_id = $1 AND order_id = $5 AND order_line = $6 AND unit = $7)", "",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"occupancy asked at once", "1", "store/postgres/reservations_atonce.go",
		"AND NOT EXISTS (SELECT FROM occupancy WHERE organization_id = $1 AND server_id = $2)", "",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"siblings at once", "5", "store/postgres/reservations_atonce.go",
		"AND (SELECT CASE WHEN ` + tryKeySQL + ` THEN ` + tryLineSQL + ` ELSE false END)", "AND ($1 || $2 || $3 || $4 || $5::bigint IS NOT NULL)",
		races, "TestAtOnceEverythingOrNothing",
	},
	{
		"hold limit at once", "5", "store/postgres/reservations_atonce.go",
		"AND ($8::text IS NULL OR policy.hold_limit > ` + openHoldsSQL(\"$8\") + `)) fit", ") fit",
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
		"binding before the state, in one transaction", "2", sales,
		"AND EXISTS (SELECT FROM bindings WHERE organization_id = $1 AND id = $5 AND reservation_id = $2)", "",
		races, "TestDeadlineIsReadBehindTheLocks",
	},
	{
		"conversion moves the occupancy row", "2", core,
		"UPDATE occupancy SET reservation_id = NULL, binding_id = NEW.id", "UPDATE occupancy SET reservation_id = reservation_id",
		races, "TestPromoteNeverReleaseAndRewrite",
	},
	{
		"deadline of a conversion", "3", sales,
		"AND ` + isHeld + ` AND r.expires_at > clock.at\n\t\t\tAND ($7::bigint", "AND ` + isHeld + `\n\t\t\tAND ($7::bigint",
		races, "TestDeadlineIsReadBehindTheLocks",
	},
	{
		"deadline of a renewal", "3", deeds,
		"AND o.id = $1 AND ` + isHeld + ` AND r.expires_at > clock.at", "AND o.id = $1 AND ` + isHeld + `",
		races, "TestDeadlineIsReadBehindTheLocks",
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
		"if k.nFree > 0 {", "if k.nFree > 1 {",
		races, "TestTwoKindsOfRefusal",
	},
	{
		"the database is read before no_capacity", "5", walk,
		"if w.seen.eligible == 0 && w.catalog.maxAge > 0 {", "if w.seen.eligible == 0 && w.catalog.maxAge < 0 {",
		races, "TestStaleCatalogNeverHidesAFreeServer",
	},
	{
		"news since the oldest open transaction", "5", "store/postgres/catalog_feed.go",
		"pg_snapshot_xmin(pg_current_snapshot())::text", "pg_snapshot_xmax(pg_current_snapshot())::text",
		races, "TestCatalogMissesNoLateCommit",
	},
	{
		"unknown outcome of a commit", "4", "store/postgres/tx.go",
		"return errors.Join(reservation.ErrOutcomeUnknown, err)", "return err",
		races, "TestLostAnswerToACommit",
	},
	{
		"the sweep passes over what is locked", "3", "store/postgres/sweep.go",
		"ORDER BY due.expires_at LIMIT $1 FOR UPDATE SKIP LOCKED", "ORDER BY due.expires_at LIMIT $1",
		races, "TestSweepPassesOverLockedRows|TestChangeFirst",
	},
	{
		"state guard in the sweep", "3", "store/postgres/sweep.go",
		"AND r.state = 'held' AND r.expires_at <= clock_timestamp()\n\t\tRETURNING", "AND r.expires_at <= clock_timestamp()\n\t\tRETURNING",
		races, "TestSweepOfOneLooksAgain",
	},
	{
		"time guard in the sweep", "3", "store/postgres/sweep.go",
		"AND r.state = 'held' AND r.expires_at <= clock_timestamp()\n\t\tRETURNING", "AND r.state = 'held'\n\t\tRETURNING",
		races, "TestSweepOfOneLooksAgain",
	},
	{
		"a commit with a warning is no commit", "4", "store/postgres/tx.go",
		"case err == nil && committed && warned(server):", "case err == nil && committed && warned(server) && t == nil:",
		races, "TestCommitWhoseWaitForTheStandbyIsCutOff",
	},
	{
		"a commit of a failed transaction stored nothing", "4", "store/postgres/tx.go",
		"case err == nil && committed:", "case err == nil:",
		"store/postgres", "TestOtherErrorsAreNotRepeated",
	},
	{
		"guard: final states are final", "1", core,
		"WHEN (OLD.state <> 'held' AND (OLD.state, OLD.ended_at,", "WHEN (OLD.state = 'parked' AND (OLD.state, OLD.ended_at,",
		races, "TestTransitionsOnlyLeaveHeld",
	},
	{
		"guard: occupancy is written by bindings", "1", core,
		"CREATE TRIGGER bindings_occupy AFTER INSERT ON bindings FOR EACH ROW EXECUTE FUNCTION binding_occupies();", "",
		races, "TestEveryNamedRuleIsRefused|TestPromoteNeverReleaseAndRewrite",
	},
	{
		"guard: fences only grow", "1", core,
		"WHEN (NEW.fence < OLD.fence OR NEW.generation < OLD.generation)", "WHEN (NEW.generation < OLD.generation)",
		races, "TestEveryNamedRuleIsRefused",
	},
	{
		"fences stay exact in JSON", "-", core,
		"bigint MAXVALUE 9007199254740991 CACHE 1", "bigint CACHE 1",
		"transport/httpapi", "TestIntegersAreExactEverywhere",
	},
	{
		"sweep unique by period, not by arguments", "10", "sweeper/jobs.go",
		"UniqueOpts: river.UniqueOpts{ByPeriod: max(every/2, time.Second)}}", "UniqueOpts: river.UniqueOpts{ByArgs: every > 0}}",
		races, "TestWorkerKilledInMidSweep|TestWorkerFrozenInMidSweep",
	},
	{
		"scopes", "9", "transport/httpapi/auth.go",
		"if op.open || slices.ContainsFunc(op.scopes, caller.Scopes.Has) {", "if op.open || slices.ContainsFunc(op.scopes, func(identity.Scope) bool { return true }) {",
		"transport/httpapi", "TestScopeMatrix",
	},
	{
		"decisions are kept for their time", "8", core,
		"AT TIME ZONE 'UTC') - decision_retention()\n", "AT TIME ZONE 'UTC')\n",
		"store/postgres", "TestOldMonthsAreDropped",
	},
	{
		"frozen lists outlive their decisions", "8", core,
		"('decision_lists', 2)", "('decision_lists', 1)",
		"store/postgres", "TestOldMonthsAreDropped",
	},
	{
		"reason frozen", "8", core,
		"CREATE TRIGGER reservations_reason_frozen BEFORE UPDATE ON reservations", "CREATE TRIGGER reservations_reason_frozen BEFORE UPDATE OF unit ON reservations",
		races, "TestEveryNamedRuleIsRefused",
	},
	{
		"token of the holder, asked at once", "9", sales,
		"AND ($7::bigint IS NULL OR r.generation = $7)", "AND coalesce($7::bigint, 0) >= 0",
		races, "TestOnlyTheNewestTokenSells",
	},
	{
		"specification of the day", "8", sales,
		"clock.at, $5, $6, clock.at, r.expires_at, r.server, r.fence", "clock.at, $5, $6, clock.at, r.expires_at, (SELECT freeze_server(s) FROM servers s WHERE s.organization_id = r.organization_id AND s.id = r.server_id), r.fence",
		races, "TestFrozenReasonAndPrice",
	},
	{
		"one's own organization", "9", "store/postgres/reservations.go",
		"WHERE r.organization_id = $1 AND r.id = $2`", "WHERE $1::text IS NOT NULL AND r.id = $2`",
		races, "TestOrganizationsAreApart",
	},
	{
		"lock order", "-", deeds,
		"{sql: lockServerOfReservationSQL, args: []any{org, id}},\n\t\t{at: gate.ChangeAfterServer},\n\t\t{sql: lockReservationSQL, args: []any{org, id}},",
		"{sql: lockReservationSQL, args: []any{org, id}},\n\t\t{at: gate.ChangeAfterServer},\n\t\t{sql: lockServerOfReservationSQL, args: []any{org, id}},",
		races, "TestServerIsLockedBeforeReservation",
	},
	{
		"the old token dies", "-", deeds,
		"SET generation = r.generation + 1, fence", "SET fence",
		races, "TestTakeOver",
	},
	{
		"token of the holder", "-", "reservation/service.go",
		"if !s.tokens.Verify(token, r.Organization, r.ID, r.Generation) {", "if !s.tokens.Verify(token, r.Organization, r.ID, r.Generation) && token == \"\" {",
		races, "TestHoldTokenRules",
	},
	{
		"door: a lock is released and extended by its token", "-", lockKeys,
		"($%d::bytea IS NULL OR token = $%[1]d)", "($%d::bytea IS NULL OR $%[1]d IS NOT NULL)",
		redisDoor, "TestReleaseComparesTheToken|TestReleaseIsOneStep",
	},
	{
		"door: the row is taken before the token is looked at", "-", lockKeys,
		"WHERE organization_id = $1 AND key = $2 FOR UPDATE\n\t\t), held", "WHERE organization_id = $1 AND key = $2\n\t\t), held",
		redisDoor, "TestReleaseThatWaitedComparesAnew",
	},
	{
		"door: a time is counted by the database's clock", "-", "store/postgres/locks.go",
		"fromNow = `clock_timestamp() +", "fromNow = `now() +",
		redisDoor, "TestLockIsTakenAndEndsByItself",
	},
	{
		"door: a lock that is over is not released", "-", lockKeys,
		"AND expires_at > clock_timestamp()\n\t\t\tAND ` + lockMatches(3)", "AND ` + lockMatches(3)",
		redisDoor, "TestLockIsTakenAndEndsByItself",
	},
	{
		"door: a lock that is over is not extended", "-", lockKeys,
		"AS matches FROM mine WHERE expires_at > clock_timestamp()", "AS matches FROM mine",
		redisDoor, "TestLockIsTakenAndEndsByItself",
	},
	{
		"door: the organization comes from the key", "9", "transport/redisport/session.go",
		"return string(c.session.caller.Organization)", "return \"acme\"",
		redisDoor, "TestOrganizationsHaveLocksOfTheirOwn",
	},
	{
		"door: a key is looked at with every command", "9", "transport/redisport/session.go",
		"c.session.key, c.session.guard.known = \"\", false\n", "return true\n",
		redisDoor, "TestRevokedKey",
	},
	{
		"door: DEL is for admins", "-", "transport/redisport/locks.go",
		"if c.session.caller.Scopes.Has(identity.ScopeAdmin) {", "if c.ctx != nil {",
		redisDoor, "TestDelIsForAdmins",
	},
	{
		"door: a lock has an expiry", "-", "transport/redisport/locks.go",
		"if put.Until.Keeps() && put.If != locking.Held {", "if c.ctx == nil {",
		redisDoor, "TestLockWithoutAnExpiryIsRefused",
	},
	{
		"door: a database that is away is an error", "-", "transport/redisport/locks.go",
		"if err != nil || held == nil {\n\t\treturn nil, err\n\t}\n\treturn &entry{value: held.Token", "if err != nil || held == nil {\n\t\treturn nil, nil\n\t}\n\treturn &entry{value: held.Token",
		redisDoor, "TestDatabaseAway",
	},
	{
		"lease: claims run one after the other", "-", "store/postgres/leases.go",
		"if _, err := tx.Exec(ctx, claimResourceSQL, organization, resource); err != nil {\n\t\t\treturn err\n\t\t}", "",
		"store/postgres", "TestWholeAndPartAtTheSameInstant",
	},
	{
		"lease: a write compares the version", "-", "store/postgres/leases_tx.go",
		"AND part = $3 AND version = $9", "AND part = $3 AND $9::bigint IS NOT NULL",
		"store/postgres", "TestEveryWriteOfALeaseCompares",
	},
	{
		"lease: the clock of the database", "-", "store/postgres/leases.go",
		"seen.Now = r.now.Time.UTC()", "",
		"store/postgres", "TestLeasesGoByTheDatabasesClock",
	},
	{
		"lease: the policy at each heartbeat", "-", "lease/service.go",
		"if err := s.mayEdit(ctx, w, key); err != nil {\n\t\tif errors.Is", "if err := error(nil); err != nil {\n\t\tif errors.Is",
		"store/postgres", "TestPolicyIsAskedEachTime",
	},
	{
		"lease: asked for every lease that would go", "-", "lease/claim.go",
		"if !c.policy.MayTakeOver(c.writer, l) {\n\t\t\treturn t, ErrEditRefused\n\t\t}", "",
		"store/postgres", "TestTakeOverLease",
	},
	{
		"lease: what was taken stays lost", "-", "lease/claim.go",
		"if gone, err := c.tx.Remove(ctx, l); err != nil || !gone {\n\t\t\treturn orLost(err)\n\t\t}", "",
		"store/postgres", "TestHeartbeatAfterTheEnd",
	},
	{
		"lease: looked at where a record is written", "-", "store/postgres/servers.go",
		"if err := mayWrite(ctx, tx, editorOf(by), &now, &next, changed); err != nil {\n\t\t\treturn err\n\t\t}", "",
		"store/postgres", "TestLeaseIsCheckedInTheWritingTransaction",
	},
	{
		"lease: looked at where a state is written", "-", "store/postgres/bindings_change.go",
		"if err := c.mustCoverState(ctx, org, key, change); err != nil {\n\t\treturn nil, err\n\t}", "",
		"store/postgres", "TestLeaseIsCheckedInTheWritingTransaction",
	},
	{
		"lease: locked while it is written under", "-", "store/postgres/leases_cover.go",
		"ORDER BY resource, part FOR SHARE`", "ORDER BY resource, part`",
		"store/postgres", "TestLeaseIsCheckedInTheWritingTransaction|TestLeaseStandsUntilTheWriteIsCommitted",
	},
	{
		"lease: told in the claim's transaction", "-", "lease/service.go",
		"return tx.Tell(ctx)", "return nil",
		"store/postgres", "TestChangesOfLeasesAreTold",
	},
	{
		"door: what nobody has seen is not overwritten", "-", lockKeys,
		"\n\t\t\tWHERE EXISTS (SELECT FROM mine)", "",
		redisDoor, "TestSetMeetsANewLock",
	},
}
