package main

// leaseMutants are the lines that keep what docs/leases.md says.
var leaseMutants = []mutant{
	{
		"lease: claims run one after the other", "-", "store/postgres/leases.go",
		"if _, err := tx.Exec(ctx, claimResourceSQL, organization, resource); err != nil {\n\t\t\treturn err\n\t\t}", "",
		stores, "TestWholeAndPartAtTheSameInstant",
	},
	{
		"lease: a write compares the version", "-", "store/postgres/leases_tx.go",
		"AND part = $3 AND version = $9", "AND part = $3 AND $9::bigint IS NOT NULL",
		stores, "TestEveryWriteOfALeaseCompares",
	},
	{
		"lease: the clock of the database", "-", "store/postgres/leases.go",
		"seen.Now = r.now.Time.UTC()", "",
		stores, "TestLeasesGoByTheDatabasesClock",
	},
	{
		"lease: the policy at each heartbeat", "-", "lease/service.go",
		"if err := s.mayEdit(ctx, w, key); err != nil {\n\t\tif errors.Is", "if err := error(nil); err != nil {\n\t\tif errors.Is",
		stores, "TestPolicyIsAskedEachTime",
	},
	{
		"lease: asked for every lease that would go", "-", "lease/claim.go",
		"if !c.policy.MayTakeOver(c.writer, l) {\n\t\t\treturn t, ErrEditRefused\n\t\t}", "",
		stores, "TestTakeOverLease",
	},
	{
		"lease: what was taken stays lost", "-", "lease/claim.go",
		"if gone, err := c.tx.Remove(ctx, l); err != nil || !gone {\n\t\t\treturn orLost(err)\n\t\t}", "",
		stores, "TestHeartbeatAfterTheEnd",
	},
	{
		"lease: looked at where a record is written", "-", "store/postgres/servers.go",
		"if err := mayWrite(ctx, tx, editorOf(by), &now, &next, changed); err != nil {\n\t\t\treturn err\n\t\t}", "",
		stores, "TestLeaseIsCheckedInTheWritingTransaction",
	},
	{
		"lease: looked at where a state is written", "-", "store/postgres/bindings_change.go",
		"if err := c.mustCoverState(ctx, org, key, change); err != nil {\n\t\treturn nil, err\n\t}", "",
		stores, "TestLeaseIsCheckedInTheWritingTransaction",
	},
	{
		"lease: locked while it is written under", "-", "store/postgres/leases_cover.go",
		"ORDER BY resource, part FOR SHARE`", "ORDER BY resource, part`",
		stores, "TestLeaseIsCheckedInTheWritingTransaction|TestLeaseStandsUntilTheWriteIsCommitted",
	},
	{
		"lease: told in the claim's transaction", "-", "lease/service.go",
		"return tx.Tell(ctx)", "return nil",
		stores, "TestChangesOfLeasesAreTold",
	},
}
