package main

// caseMutants are the lines that keep what the cases from elsewhere ask, of docs/operations.md.
var caseMutants = []mutant{
	{
		"one's own order line is nobody else's", "7", walk,
		"case bytes.Equal(r.Fingerprint, w.fingerprint):\n\t\treturn w.repeat(OutcomeExisting, r), nil", "case w == nil:\n\t\treturn w.repeat(OutcomeExisting, r), nil",
		races, "TestOwnHoldIsInNobodysOwnWay",
	},
	{
		"busy is not called sold out", "5", "allocation/secondpass.go",
		"if !w.fitted {\n\t\treturn w.nothing(ctx)\n\t}", "if w.fitted || !w.fitted {\n\t\treturn w.nothing(ctx)\n\t}",
		races, "TestFiftyBuyersRoundAfterRound",
	},
	{
		"hold limit in the walk", "5", walk,
		"w.opening.OpenHolds < w.opening.Policy.HoldLimit", "w.opening.OpenHolds <= w.opening.Policy.HoldLimit",
		races, "TestHoldLimitMakesRoomAgain",
	},
	{
		"an ended hold does not count", "5", open,
		" AND ended_at IS NULL AND expires_at", " AND expires_at",
		races, "TestHoldLimitMakesRoomAgain",
	},
	{
		"who pays too late leaves an event", "3", "reservation/convert.go",
		"if errors.Is(refusal, ErrExpired) || errors.Is(refusal, ErrCancelled) {", "if errors.Is(refusal, ErrCancelled) {",
		races, "TestPaidAfterTheDeadline",
	},
	{
		"what is held or sold is not taken out", "1", "reservation/serverstate.go",
		"case !occupied.Free() && !change.Force:", "case occupied == nil && !change.Force:",
		races, "TestRetiringAndWhatIsInItsWay",
	},
	{
		"each refusal is on record", "5", walk,
		"if err := w.tx.Decide(ctx, d); err != nil {", "if d.Cause == CauseServersTaken {\n\t\treturn &Outcome{Code: d.Outcome, Reservation: inTheWay, Decision: d}, nil\n\t}\n\tif err := w.tx.Decide(ctx, d); err != nil {",
		races, "TestRefusalUsesUpNoKey",
	},
	{
		"equals are ordered alike everywhere", "-", "allocation/rank.go",
		"func hashID(id inventory.ServerID) uint64 { return scatter(hashText(string(id))) }", "var calls uint64\n\nfunc hashID(id inventory.ServerID) uint64 {\n\tcalls++\n\treturn scatter(hashText(string(id)) + calls)\n}",
		races, "TestSameRequestSameServer",
	},
	{
		"a record that is gone is read as it was", "8", "store/postgres/reservationrow.go",
		"r.organization_id, r.id, r.server, r.order_id", "r.organization_id, r.id, coalesce((SELECT freeze_server(s) FROM servers s WHERE s.organization_id = r.organization_id AND s.id = r.server_id), r.server), r.order_id",
		races, "TestDecisionsOutliveServerAndOrganization",
	},
	{
		"a panic rolls back", "10", "store/postgres/tx.go",
		"defer t.abandon(ctx) // also when fn panics", "defer func() { _ = t.commit(ctx) }()",
		races, "TestPanicInsideAChange",
	},
	{
		"a panic keeps no lease's connection", "10", "store/postgres/leases.go",
		"\tdefer func() { // also when fn panics\n\t\tback,", "\tdefer func() {\n\t\tif recovered := recover(); recovered != nil {\n\t\t\tpanic(recovered)\n\t\t}\n\t\tback,",
		httpDoor, "TestPanicInEveryRouteThatWrites",
	},
	{
		"a hold lasts as long in summer", "3", try,
		"make_interval(secs => (SELECT hold_seconds FROM organizations WHERE id = $1)) AS hold", "((clock_timestamp()::timestamp + make_interval(secs => (SELECT hold_seconds FROM organizations WHERE id = $1)))::timestamptz - clock_timestamp()) AS hold",
		races, "TestSummerTimeIsNotNoticed",
	},
	{
		"a process sweeps when it starts", "10", "sweeper/sweeper.go",
		"river.NewPeriodicJob(river.PeriodicInterval(o.Every), sweep, onStart)", "river.NewPeriodicJob(river.PeriodicInterval(o.Every), sweep, nil)",
		"sweeper", "TestRestartsNeitherStopNorPileUpSweeps",
	},
	{
		"jobs of killed workers are rescued", "10", "sweeper/sweeper.go",
		"rescueAfter = 2 * time.Minute", "rescueAfter = 2 * time.Hour",
		races, "TestJobsOfKilledWorkersRunAgain",
	},
	{
		"readiness ends before the service does", "-", "transport/httpapi/serve.go",
		"s.draining.Store(true)", "s.draining.Store(false)",
		races, "TestRollingRestarts",
	},
	{
		"requests are served while a balancer looks away", "-", "transport/httpapi/serve.go",
		"case <-time.After(s.deps.DrainDelay):", "case <-time.After(0 * s.deps.DrainDelay):",
		races, "TestRollingRestarts",
	},
	{
		"no second connection", "10", walk,
		"return w.newsFrom(ctx, w.tx, since)", "return w.newsFrom(ctx, w.store, since)",
		stores, "TestSmallPoolsDoNotDeadlock",
	},
	{
		"one migrates, and the others wait", "-", "migrations/up.go",
		"goose.WithSessionLocker(locker),", "goose.WithVerbose(locker == nil),",
		"migrations", "TestReplicasThatStartTogetherTakeTurns",
	},
	{
		"a hang-up is no failure", "-", "transport/httpapi/record.go",
		"case errors.Is(c.Request().Context().Err(), context.Canceled):", "case errors.Is(c.Request().Context().Err(), http.ErrNoCookie):",
		httpDoor, "TestCallersThatHangUpFindOutByTheirKey",
	},
	{
		"texts in paths are checked", "-", "transport/httpapi/parameters.go",
		"switch faults := p.check(\"path:\"+p.name, []string{text}); {", "switch faults := p.check(\"path:\"+p.name, []string{\"a\"}); {",
		httpDoor, "FuzzPath",
	},
	{
		"a body that breaks off is the caller's", "-", "transport/httpapi/readbody.go",
		"return invalid(strictjson.Fault{Code: strictjson.CodeMalformedJSON, Detail: \"The body ended before it was complete, or came too slowly.\"})", "return err",
		httpDoor, "FuzzRawHTTP",
	},
	{
		"a secret is not told", "-", "reservation/token.go",
		"the secret must be at least %d bytes in hexadecimal (try: openssl rand -hex 32)\", name, minTokenSecret)", "the secret must be at least %d bytes in hexadecimal, not %s\", name, minTokenSecret, secretHex)",
		"reservation", "FuzzTokenKeys",
	},
	{
		"catalog: counted from the database", "5", "allocation/catalog_now.go",
		"known.bringUp(ctx, 0, func", "known.bringUp(ctx, DefaultMaxAge, func",
		stores, "TestCapacityIsWhatSQLCounts",
	},
	{
		"catalog: news are told once", "5", "store/postgres/catalog_feed.go",
		"strconv.ParseUint(parts[1], 10, 64)", "strconv.ParseUint(parts[0], 10, 64)",
		stores, "TestNewsAreToldOnceBesideATransactionThatStaysOpen",
	},
	{
		"catalog: the transaction that reads may go on to change", "5", "store/postgres/catalog_feed.go",
		`if own == "" {`, `if own != "" || own == "" {`,
		stores, "TestNewsOfTheTransactionThatReadsThem",
	},
	{
		"catalog: the last page is waited for", "5", "allocation/catalog_fill.go",
		"\t<-applied\n", "",
		"allocation", "TestFirstReadEndsWithItsLastPage",
	},
	{
		"catalog: what a sibling tries comes last", "5", "allocation/catalog.go",
		"return t.busy[id] > 0", "return false",
		"allocation", "TestSiblingsServersAreLeftAlone",
	},
	{
		"catalog: nothing is claimed twice at once", "5", "allocation/catalog.go",
		"if t.busy[id] > 0 {", "if t.busy[id] < 0 {",
		"allocation", "TestSiblingsServersAreLeftAlone",
	},
	{
		"catalog: no page is left out", "5", "store/postgres/catalog_feed.go",
		"if from, err = idAfter(last); err != nil || from == uuid.Nil {", "if from, err = idAfter(last); err == nil {\n\t\t\tfrom, err = idAfter(inventory.ServerID(formatID(serverIDPrefix, from)))\n\t\t}\n\t\tif err != nil || n == a.feedPage {",
		stores, "TestPagesAreEverything",
	},
	{
		"catalog: the horizon is read before the pages", "5", "store/postgres/catalog_feed.go",
		"return start, a.pages(ctx, holdingsPageSQL", "if err := scanHorizon(a.pool.QueryRow(ctx, horizonSQL), &start); err != nil {\n\t\treturn start, err\n\t}\n\treturn start, a.pages(ctx, holdingsPageSQL",
		stores, "TestFirstReadLosesNothingBetweenPages",
	},
	{
		"catalog: the first read belongs to nobody", "-", "allocation/catalog_fill.go",
		"context.WithTimeout(context.WithoutCancel(ctx), maxFill)", "context.WithTimeout(ctx, maxFill)",
		stores, "TestFirstReadOutlivesItsCaller",
	},
	{
		"catalog: one reads for all who wait", "-", "allocation/catalog_fill.go",
		"if t.filling != nil {\n\t\treturn t.filling\n\t}", "",
		"allocation", "TestFirstReadIsShared",
	},
	{
		"catalog: unread is no failure", "-", "allocation/allocator.go",
		"if !errors.Is(err, errUnread) {", "if err != nil || !errors.Is(err, errUnread) {",
		stores, "TestSmallPoolsDoNotDeadlock",
	},
	{
		"catalog: what changes while it is read is read again", "5", "allocation/catalog.go",
		"&& !t.read.Before(t.lost)", "",
		"allocation", "TestOutdatedWhileItIsRead",
	},
	{
		"catalog: far behind, everything is read anew", "5", "allocation/catalog.go",
		"news.TooMuch && x.forget() || ", "",
		"allocation", "TestCatalogThatIsFarBehindReadsEverythingAnew",
	},
	{
		"catalog: news of an older read are no beginning", "5", "allocation/catalog_index.go",
		"if !news.Horizon.IsZero() && x.horizon.IsZero() {", "if !news.Horizon.IsZero() && x.horizon.IsZero() && x.filling {",
		"allocation", "TestCatalogThatIsFarBehindReadsEverythingAnew",
	},
	{
		"catalog: a read that was cut is noticed", "5", "store/postgres/catalog_feed.go",
		"news.TooMuch = len(news.Servers) > most", "news.TooMuch = false",
		stores, "TestMoreNewsThanOneReadMayBring",
	},
	{
		"catalog: a walk does not wait for who waits for its connection", "-", walk,
		"w.known.bringUpInTx(", "w.known.bringUp(",
		races, "TestWalkDoesNotWaitForWhoWaitsForItsConnection",
	},
}
