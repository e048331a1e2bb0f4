package main

const (
	lockStore = "store/postgres/locks.go"
	tick      = "locking/tick.go"
)

// lockMutants are the lines that keep what docs/locks.md says.
var lockMutants = []mutant{
	{
		"lock: the token of a handle is compared", "-", "locking/memory.go",
		"return h != nil && m.held[h.key].id == h.token && h.token != \"\"", "return h != nil && m.held[h.key].id != \"\"",
		"locking", "TestChangedHandleChangesNothing|TestStaleHandleTouchesNothing",
	},
	{
		"lock: redis compares before it prolongs", "-", "locking/redis_compare.go",
		"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end", "return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
		"locking", "TestRedisComparesAndActsInOneStep",
	},
	{
		"lock: redis compares before it deletes", "-", "locking/redis_compare.go",
		"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end", "return redis.call('DEL', KEYS[1])",
		"locking", "TestRedisComparesAndActsInOneStep",
	},
	{
		"lock: redis takes only what is free", "-", "locking/redis.go",
		"h.token, \"NX\", \"PX\", ttl.Milliseconds())", "h.token, \"PX\", ttl.Milliseconds())",
		"locking", "TestOneOfManyGetsIt|TestLockIsTakenKeptAndGivenBack",
	},
	{
		"lock: redis is not asked twice for one acquisition", "-", "locking/redis.go",
		"options.MaxRetries, options.DialerRetries = -1, 1", "options.MaxRetries, options.DialerRetries = 3, 1",
		"locking", "TestRedisDoesNotTakeItsOwnLockForAnothers",
	},
	{
		"lock: a dead lock in memory jams no key", "-", "locking/memory.go",
		"return !now.Before(lock.expires)", "return now.Before(now.Add(-1))",
		"locking", "TestMemoryLockEndsAtItsDeadline|TestMemoryForgetsDeadLocks",
	},
	{
		"lock: pg recognises a pooler", "-", "locking/postgres_session.go",
		"if pid != int64(s.conn.PgConn().PID()) {", "if pid == 0 {",
		"locking", "TestPostgresRefusesAPooler",
	},
	{
		"lock: pg hashes to 64 bits", "-", "locking/postgres_session.go",
		"keyHash = `hashtextextended($1, 7311845019)`", "keyHash = `hashtext($1)::bigint`",
		"locking", "TestPostgresHashesKeysTo64Bits",
	},
	{
		"lock: pg has a limit", "-", "locking/postgres_places.go",
		"case p.places >= p.limit:", "case p.places < 0:",
		"locking", "TestPostgresHasALimit",
	},
	{
		"lock: a renewal looks at the connection", "-", "locking/postgres.go",
		"if err := s.ping(ctx); err != nil {", "if err := s.ping(ctx); err != nil && s.conn == nil {",
		"locking", "TestPostgresRenewalSeesTheSessionEnd|TestPostgresLockGoesWithItsConnection",
	},
	{
		"lock: a failed renewal ends the work", "-", "locking/while.go",
		"			cancel(ErrNotOwner)\n", "",
		"locking", "TestFailedRenewalEndsTheWork",
	},
	{
		"lock: a lock is renewed while the work goes on", "-", "locking/while.go",
		"err := l.Renew(bounded, h)", "err := bounded.Err()",
		"locking", "TestLongWorkKeepsItsLock",
	},
	{
		"job: the tick is claimed, not only the moment", "-", tick,
		"err = keepClaim(ctx, j, tick)", "err = nil",
		"locking", "TestRequireGlobalRunsOncePerTick",
	},
	{
		"job: no run without the lock", "-", tick,
		"ran, err := While(ctx, j.locker, j.lockKey(), j.ttl, func(ctx context.Context) error {",
		"ran, err := While(ctx, NewMemory(), j.lockKey(), j.ttl, func(ctx context.Context) error {",
		"locking", "TestRunAskedForTakesTheSameLock",
	},
	{
		"job: a tick that is as good as over is left out", "-", tick,
		"if !j.beforeNext(tick, time.Now()) { //", "if j.Interval < 0 { //",
		"locking", "TestSlowBackendRunsNoTickTwice",
	},
	{
		"job: require_global wants a lock that all share", "-", "locking/scheduler.go",
		"case job.Hint == RequireGlobal && !shared:", "case job.Hint == RequireGlobal && locker == nil && !shared:",
		"locking", "TestRequireGlobalNeedsASharedBackend",
	},
	{
		"job: prefer_global without a backend is its own case", "-", "locking/scheduler.go",
		"case job.Hint == PreferGlobal && locker == nil:\n		j.locker = NewMemory()", "case job.Hint == PreferGlobal:\n		j.locker = NewMemory()",
		"locking", "TestPreferGlobal|TestBrokenBackendLeavesTheJobOut",
	},
	{
		"job: an overrun is reported", "-", "locking/run.go",
		"j.update(func(s *Status) { s.Overruns++ })", "",
		"locking", "TestOverrunIsReported",
	},
	{
		"job: a run that is asked for takes the lock", "-", "locking/scheduler.go",
		"ran, err = While(ctx, j.locker, j.lockKey(), j.ttl, func(ctx context.Context) error {",
		"ran, err = While(ctx, NewMemory(), j.lockKey(), j.ttl, func(ctx context.Context) error {",
		httpDoor, "TestJobRunsOnceAtATime",
	},
	{
		"job: a finding is no failure", "-", "locking/run.go",
		"s.Findings++\n", "s.Errors++\n",
		"locking", "TestFindingIsNoFailure",
	},
	{
		"job: why a run failed is for the platform", "9", httpDoor + "/jobs.go",
		"if callerOf(ctx).Scopes.Has(identity.ScopePlatform) {", "if callerOf(ctx).Scopes.Has(identity.ScopeOperator) {",
		httpDoor, "TestJobs",
	},
	{
		"job: an oversale leaves one event", "1", "store/postgres/oversold.go",
		"AND e.binding_id = o.binding_id AND e.type", "AND e.binding_id IS NULL AND e.type",
		stores, "TestOversellIsFoundAndToldOnce",
	},
	{
		"grant: the deadline by the database's clock", "-", lockStore,
		"AND key = $2 AND expires_at > clock_timestamp())", "AND key = $2 AND isfinite(expires_at))",
		stores, "TestGrantEndsByTheDatabasesClock",
	},
	{
		"grant: looked at again after the wait", "-", lockStore,
		"WHERE held.expires_at <= clock_timestamp()", "WHERE held.expires_at IS NOT NULL",
		stores, "TestGrantTakenDuringTheWaitIsContention|TestGrantGoesToOneOfMany",
	},
	{
		"grant: the fence is drawn after the wait", "-", lockStore,
		"fence = nextval('lock_fences')", "fence = excluded.fence",
		stores, "TestFenceIsDrawnAfterTheWait",
	},
	{
		"grant: the row before the clock in a renewal", "-", lockStore,
		"AND key = $2 AND token = $3 FOR UPDATE", "AND key = $2 AND token = $3",
		stores, "TestGrantIsNotRenewedAfterAWaitBeyondItsDeadline",
	},
	{
		"grant: the token in a release", "-", lockStore,
		"WHERE organization_id = $1 AND key = $2 AND token = $3 AND expires_at > clock_timestamp()`", "WHERE organization_id = $1 AND key = $2 AND $3::bytea IS NOT NULL AND expires_at > clock_timestamp()`",
		stores, "TestGrantComparesTheToken",
	},
	{
		"grant: a database that is away is no contention", "-", lockStore,
		"if errors.Is(err, reservation.ErrUnavailable) {", "if errors.Is(err, reservation.ErrNotFound) {",
		stores, "TestDatabaseAwayIsNotContention",
	},
	{
		"grant: the same at the door", "-", httpDoor + "/translate.go",
		"case errors.Is(err, locking.ErrBackend):", "case errors.Is(err, locking.ErrUnknownJob):",
		httpDoor, "TestLocksWithoutTheDatabase",
	},
	{
		"grant: keys are counted in bytes", "-", "locking/locker.go",
		"case key == \"\" || len(key) > MaxKeyBytes:", "case key == \"\":",
		httpDoor, "TestLockInputIsChecked",
	},
	{
		"fence: only the newest one writes", "-", lockStore,
		"if err == nil && newest != proof.Fence {", "if err == nil && newest < 0 {",
		stores, "TestOnlyTheNewestFenceWrites",
	},
	{
		"fence: a grant on its way is waited for", "-", lockStore,
		"WHERE organization_id = $1 AND key = $2 FOR SHARE`", "WHERE organization_id = $1 AND key = $2`",
		stores, "TestFenceWaitsForAGrantOnItsWay",
	},
	{
		"fence: nobody is granted the lock before the commit", "-", lockStore,
		"WHERE organization_id = $1 AND key = $2 FOR SHARE`", "WHERE organization_id = $1 AND key = $2`",
		stores, "TestGrantWaitsForWhatItsFenceProtects",
	},
	{
		"fence: read behind the server's lock", "-", "reservation/serverstate.go",
		"		occupied, err := tx.LockServer(ctx, caller.Organization, change.ServerID)\n		if err != nil {\n			return err\n		}\n		changed, refusal = occupied.Server, checkFence(ctx, tx, caller, change.Lock)",
		"		early := checkFence(ctx, tx, caller, change.Lock)\n		occupied, err := tx.LockServer(ctx, caller.Organization, change.ServerID)\n		if err != nil {\n			return err\n		}\n		changed, refusal = occupied.Server, early",
		stores, "TestFenceIsReadAfterTheWaitForTheServer",
	},
}
