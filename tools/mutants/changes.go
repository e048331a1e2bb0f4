package main

// changeMutants are the lines that keep what happens to a hold afterwards: its sale and its deadline, the sweep, the commit,
// what is frozen, and who may do it.
var changeMutants = []mutant{
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
		stores, "TestOtherErrorsAreNotRepeated",
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
		httpDoor, "TestIntegersAreExactEverywhere",
	},
	{
		"sweep unique by period, not by arguments", "10", "sweeper/jobs.go",
		"UniqueOpts: river.UniqueOpts{ByPeriod: max(every/2, time.Second)}}", "UniqueOpts: river.UniqueOpts{ByArgs: every > 0}}",
		races, "TestWorkerKilledInMidSweep|TestWorkerFrozenInMidSweep",
	},
	{
		"scopes", "9", "transport/httpapi/auth.go",
		"if op.open || slices.ContainsFunc(op.scopes, caller.Scopes.Has) {", "if op.open || slices.ContainsFunc(op.scopes, func(identity.Scope) bool { return true }) {",
		httpDoor, "TestScopeMatrix",
	},
	{
		"months are those of UTC", "8", core,
		"SET search_path FROM CURRENT SET timezone = 'UTC' AS $$", "SET search_path FROM CURRENT AS $$",
		stores, "TestMonthsAreThoseOfUTC",
	},
	{
		"of those who make months one does", "8", core,
		"EXECUTE format('LOCK TABLE %I IN SHARE UPDATE EXCLUSIVE MODE', parent);", "",
		stores, "TestMonthsAreMadeOnce",
	},
	{
		"the month is there before the first request", "8", "cmd/allocator/serving.go",
		"_, err := postgres.NewPartitions(db.pool).MakeMonths(ctx, sweeper.PartitionMonths)", "err := error(nil)",
		"cmd/allocator", "TestServeMakesTheMonthFirst",
	},
	{
		"decisions are kept for their time", "8", core,
		"<= clock_timestamp() - decision_retention()\n", "<= clock_timestamp()\n",
		stores, "TestOldMonthsAreDropped",
	},
	{
		"frozen lists outlive their decisions", "8", core,
		"('decision_lists', 2)", "('decision_lists', 1)",
		stores, "TestOldMonthsAreDropped",
	},
	{
		"a decision is its event", "8", core,
		"FROM decisions WHERE outcome = 'reserved'", "FROM decisions WHERE outcome = 'nothing'",
		races, "TestBrokenConversionLeavesTheHold",
	},
	{
		"reason frozen", "8", core,
		"BEFORE UPDATE OF reason, requirements, server, decision_id, fingerprint ON reservations", "BEFORE UPDATE OF unit ON reservations",
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
}
