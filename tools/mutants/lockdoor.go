package main

const (
	lockKeys  = "store/postgres/lockkeys.go"
	redisDoor = "transport/redisport"
)

// lockDoorMutants are the lines that keep what the door for Redis clients says of locks, of docs/locks.md.
var lockDoorMutants = []mutant{
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
		"door: a time is counted by the database's clock", "-", lockStore,
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
		"door: what nobody has seen is not overwritten", "-", lockKeys,
		"\n\t\t\tWHERE EXISTS (SELECT FROM mine)", "",
		redisDoor, "TestSetMeetsANewLock",
	},
}
