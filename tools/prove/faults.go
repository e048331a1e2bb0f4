package main

// faultRows make the faults of docs/operations.md, most of them in a longer form than `make test` has. A long form is as
// long as the test's means last: servers that are sold do not come back, and databases stay until its end.
var faultRows = []row{
	{"fault F-R1, F-R3, F-R16: what changes before the lock is got", together(
		in(concurrency, "TestAtOnceJudgesBehindTheLock", "TestDeadlineIsReadBehindTheLocks"))},
	{"fault F-R4: a conversion and sweeps at the deadline", races("TestConvertAndSweepAtTheDeadline", "CONCURRENCY_ROUNDS=300", "CONCURRENCY_ROUNDS=5000")},
	{"fault F-R5, F-R6, F-R7: two deeds with one hold at once", together(
		in(concurrency, "TestControlSweepByIDsExpiresARenewedHold", "TestCancelTenTimesAtTheDeadline", "TestConvertTenTimesAtOnce"))},
	{"fault F-R8, F-R9: a token of an earlier holder", together(
		in(concurrency, "TestHistoryModel", "TestTakeOver"), in(door, "TestRenewAndCancel", "TestTakeOver"))},
	{"fault F-R10: a renewal comes to its row after the deadline", together(
		in(database, "TestFenceIsDrawnAfterTheWait", "TestGrantIsNotRenewedAfterAWaitBeyondItsDeadline"))},
	{"fault F-R11, F-R12, F-R13: servers that are free and locked", together(
		in(concurrency, "TestRolledBackRivalLeavesTheServer", "TestTwoKindsOfRefusal", "TestControlForeignKeySkipsAFreeMachine",
			"TestNoForeignKeyOnTheSalePath", "TestABoundedScan", "TestControlLimitBeforeLockingMissesTheFreeMachine"))},
	{"fault F-R14: two transactions lock in opposite orders", together(
		in(concurrency, "TestTwoReclaimsDoNotWaitForEachOther"),
		in(database, "TestClashesRepeatTheWholeTransaction", "TestDeadlockIsRepeated"))},

	{"fault F-L1: a hundred buyers at once", races("TestNoHerd", "CONCURRENCY_ROUNDS=20", "CONCURRENCY_ROUNDS=300")},
	{"fault F-L1: who is refused comes again when told", races("TestRefusedOfAHerdComeAgainWhenTold",
		"CONCURRENCY_ROUNDS=8", "CONCURRENCY_ROUNDS=100")},
	{"fault F-L1, F-L2: crowds that want the same servers", together(in(concurrency, "TestSixtyFourBuyersOfOneServer",
		"TestHundredOrdersKeepTheLimits", "TestTwoHundredBuyersOfAHundredServers"))},
	{"fault F-L4: callers that come again at once", races("TestRetryStorm", "CONCURRENCY_ROUNDS=15", "CONCURRENCY_ROUNDS=300")},
	{"fault F-L5: few connections, and slow transactions in them", together(
		in(concurrency, "TestWalkDoesNotWaitForWhoWaitsForItsConnection"), in(database, "TestSmallPoolsDoNotDeadlock"),
		in(door, "TestDatabaseAway"), in(redisDoor, "TestDatabaseAway"))},
	{"fault F-L6: an old snapshot is kept", races("TestOldSnapshotIsKept", "CONCURRENCY_CYCLES=1500", "CONCURRENCY_CYCLES=12000")},
	{"fault F-L6: a transaction stays open beside what is told", together(
		in(database, "TestNewsAreToldOnceBesideATransactionThatStaysOpen"))},

	{"fault F-C1, F-C8, F-K7: killed before the commit and after it", together(
		in(concurrency, "TestAcknowledgedReservationsSurviveKill", "TestKilledBeforeTheAcknowledgement", "TestKilledBeforeTheCommit"))},
	{"fault F-C2: frozen inside a transaction", together(in(concurrency, "TestFrozenInsideATransaction"))},
	{"fault F-C3: the service is asked to stop under load", races("TestServiceAskedToStopUnderLoad")},
	{"fault F-C3: asked to stop in a request, and in a sweep", together(
		in(concurrency, "TestWorkerAskedToStopInMidSweep"), in(door, "TestServeFinishesWhatItBegan"))},
	{"fault F-C3: rolling restarts behind a balancer", races("TestRollingRestarts", "CONCURRENCY_ROUNDS=2", "CONCURRENCY_ROUNDS=6")},
	{"fault F-C4: PostgreSQL is stopped without ceremony", races("TestPostgresStoppedWithoutCeremony", "CONCURRENCY_ROUNDS=8", "CONCURRENCY_ROUNDS=80")},
	{"fault F-C5: sessions are ended in mid-transaction", together(
		in(concurrency, "TestSessionTerminatedInMidSweep", "TestSessionTerminatedInMidTransaction"),
		in(database, "TestSessionEndedInMidTransaction"))},
	{"fault F-C6, F-F6: the answer to COMMIT is lost", together(
		in(concurrency, "TestLostAnswerToACommit", "TestLostCommit"), in(database, "TestCommitMayStand"))},
	{"fault F-C7, F-D2: settings and indexes that break promises", together(
		in(database, "TestCheckServer"), in(concurrency, "TestIndexLeftInvalid"))},
	{"fault F-C9: a panic after a write", together(in(concurrency, "TestPanicInsideAChange"),
		in(database, "TestPanicInsideATransaction"), in(door, "TestPanicInEveryRouteThatWrites", "TestPanicsAndFaultsStayInside"))},
	{"fault F-C10: the service runs out of memory", races("TestServiceOutOfMemory")},

	{"fault F-N1: callers disconnect in the middle", together(in(database, "TestContextCancelledInMidTransaction"),
		in(door, "TestCallerThatGoesAway", "TestCallersThatHangUpFindOutByTheirKey", "TestOrganizationsStayApartUnderLoad"))},
	{"fault F-N2: the network swallows everything", races("TestNetworkSwallowsEverything")},
	{"fault F-N3: a slow network, a byte at a time", races("TestSlowNetwork", "CONCURRENCY_LATENCY=200")},
	{"fault F-N4: hundreds of slow clients", races("TestManySlowClients", "CONCURRENCY_SLOW=500")},
	{"fault F-N4: headers that do not come", together(in(door, "TestSlowHeadersAreCutOff"))},
	{"fault F-N5: a pooler in transaction mode", together(in(concurrency, "TestBehindAPoolerInTransactionMode"),
		in(work, "TestPollOnly"), in("locking", "TestPostgresRefusesAPooler"))},
	{"fault F-T1, F-T2: the clock jumps", together(
		in(concurrency, "TestClockJumpsAhead", "TestClockJumpsBack"), in("allocation", "TestCatalogForgetsWhenTheClockWasSetBack"))},
	{"fault F-T1, F-T2: the sweep after a jump of the clock", races("TestSweepGoesOnAfterAJumpOfTheClock")},
	{"fault F-T3: clocks apart", races("TestClocksApart")},
	{"fault F-T5: times at every edge", together(in(door, "TestTimesAtEveryEdge"))},

	{"fault F-F1: an asynchronous standby takes over", races("TestAsynchronousStandbyTakesOver")},
	{"fault F-F2: a synchronous standby takes over", races("TestSynchronousStandbyTakesOver")},
	{"fault F-F2: the synchronous standby is away", races("TestNothingIsAcknowledgedWithoutTheSynchronousStandby")},
	{"fault F-F3: the old primary comes back", races("TestOldPrimaryComesBack")},
	{"fault F-F4: Patroni's leader is frozen", part("TestPatroni", "its leader is frozen", "CONCURRENCY_LONG=1")},
	{"fault F-F4: Patroni's etcd is away", part("TestPatroni", "etcd is away", "CONCURRENCY_LONG=1")},
	{"fault F-F4: Patroni's leader has no room", part("TestPatroni", "its leader's disk is full", "CONCURRENCY_LONG=1")},
	{"fault F-F5: a standby that is behind is asked", races("TestStandbyDecidesNothing")},
	{"fault F-F6: the wait for a standby is cut off", races("TestCommitWhoseWaitForTheStandbyIsCutOff")},
	{"fault F-S1: the disk is full", races("TestDiskFull")},
	{"fault F-S2: all connections are taken", races("TestConnectionsUsedUp")},
	{"fault F-S3: few file descriptors, and callers that hang up", races("TestServiceWithFewFileDescriptors", "CONCURRENCY_ABORTS=9000", "CONCURRENCY_ABORTS=20000")},
	{"fault F-S4: nobody reads the log", races("TestNobodyReadsTheLog")},
	{"fault F-S4: nobody waits for the log", together(in("cmd/allocator", "TestALogThatNobodyReadsStopsNobody"))},

	{"fault F-J1: the worker that leads is killed", together(in(concurrency, "TestTwoWorkersAndTheLeaderKilled"))},
	{"fault F-J2: a sweep of a killed worker stays running", together(
		in(concurrency, "TestWorkerKilledInMidSweep", "TestJobsOfKilledWorkersRunAgain"), in(work, "TestOneSweepPerPeriod"))},
	{"fault F-C2, F-J3: a worker frozen in mid-sweep, and two sweeps at once", together(
		in(concurrency, "TestWorkerFrozenInMidSweep", "TestSweepsAtOnce"))},
	{"fault F-J4, F-J5, F-J6: rows that cannot be swept, and no sweep", together(
		in(concurrency, "TestPoisonRow", "TestDeadHoldIsSoldWithoutASweeper", "TestSweepLeavesUnknownStates"),
		in(work, "TestFailedSweepsDoNotStopTheNext"), in("cmd/allocator", "TestDoctorFindsWhatIsBroken"))},
	{"fault F-K1: one key fifty times at once", races("TestFiftyOfOneKeyOverThreeServices",
		"CONCURRENCY_ROUNDS=20", "CONCURRENCY_ROUNDS=300")},
	{"fault F-K1, F-K2, F-K4: one key again", together(in(concurrency,
		"TestFiveOfOneKeyGiveOneReservation", "TestSameKeyOtherBody", "TestOrderLineAgain"))},
	{"fault F-K3, F-K8: bodies and keys that are written otherwise", together(
		in("allocation", "TestFingerprintOfBodies"), in(door, "TestWhatMeansTheSameIsTheSame", "TestIdempotencyKey"))},

	{"fault F-D1: processes that migrate at once", races("TestServicesThatMigrateAtOnce",
		"CONCURRENCY_ROUNDS=15", "CONCURRENCY_ROUNDS=50")},
	{"fault F-D1, F-D4: migrations that wait", together(in("migrations", "TestReplicasThatStartTogetherTakeTurns",
		"TestMigrationGivesUpOnATableItNeverGets", "TestMigrationThatCannotHaveItsTableIsBegunAgain"))},
	{"fault F-D2: migrations are killed", races("TestMigrationKilled", "CONCURRENCY_ROUNDS=8", "CONCURRENCY_ROUNDS=60")},
	{"fault F-D3: rolled out and back under load", races("TestRollingUpgradeAndBack", "CONCURRENCY_LONG=1")},
	{"fault F-D5: the switch flickers under load", races("TestSwitchFlickers", "CONCURRENCY_ROUNDS=10", "CONCURRENCY_ROUNDS=25")},
	{"fault F-D5: what goes on while the switch is off", together(
		in(concurrency, "TestSweepHasNoSwitch", "TestSwitchOffStrandsNobody"), in(redisDoor, "TestSwitchOffStrandsNobody"))},
	{"fault F-D6: the switches cannot be read", together(in(database, "TestSwitchKeepsItsValueWhileTheDatabaseIsAway"),
		in("featureflags", "TestUnreachableStoreMeansLastKnownElseOff"))},
	{"fault F-D7: a backup is restored", races("TestBackupRestored")},

	{"fault F-H1, F-H2, F-H3, F-H4, F-H5, F-A2: what is not to be read", together(
		in(door, "TestSizeAndTypeOfBodies", "TestBodiesAreReadStrictly", "TestLeaseRequestsAreReadStrictly", "TestQueriesAreReadStrictly",
			"TestRequestsThatTwoServersReadInTwoWays"),
		in(strictJSON, "TestCheckNamesTheFieldAndTheFault", "TestParseRefusesBrokenSyntax"))},
	{"fault F-A1, F-A3, F-A4, F-A5: keys and tokens of others", together(
		in(concurrency, "TestOrganizationsAreApart"), in(door, "TestOtherOrganizationsAreNotThere", "TestAudit", "TestScopeMatrix"),
		in(database, "TestRevokedKeyIsRefusedWithinFiveSecondsByAnotherProcess"), in("reservation", "TestNoOtherTextVerifies"))},
}
