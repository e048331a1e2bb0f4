package main

// commands is the command line: every subcommand, in the order in which the help shows them.
type commands struct {
	globals

	Up      upCmd      `cmd:"" group:"run" help:"Run everything for a first look: PostgreSQL, a sample inventory and the service."`
	Serve   serveCmd   `cmd:"" group:"run" help:"Run the service."`
	Demo    demoCmd    `cmd:"" group:"run" help:"Play a shop's day: an order, a payment, a refusal, an abandoned cart."`
	Migrate migrateCmd `cmd:"" group:"run" help:"Bring the database schema up to date."`

	Reserve  reserveCmd  `cmd:"" group:"sell" help:"Hold a server for an order line."`
	Renew    renewCmd    `cmd:"" group:"sell" help:"Move a reservation's deadline to now plus the hold time."`
	Convert  convertCmd  `cmd:"" group:"sell" help:"Sell the held server to a service."`
	Cancel   cancelCmd   `cmd:"" group:"sell" help:"Give a reservation up."`
	Evaluate evaluateCmd `cmd:"" group:"sell" help:"Show what would be chosen now, and why not the others."`
	Explain  explainCmd  `cmd:"" group:"sell" help:"Tell the story of an order: why each try got what it got."`
	Servers  serversCmd  `cmd:"" group:"sell" help:"List, show and keep servers."`

	Orgs   orgsCmd   `cmd:"" group:"keep" help:"Keep organizations."`
	Keys   keysCmd   `cmd:"" group:"keep" help:"Keep API keys."`
	Flags  flagsCmd  `cmd:"" group:"keep" help:"Turn the release switch."`
	Locks  locksCmd  `cmd:"" group:"keep" help:"Take locks, for scripts that must be alone at something."`
	Jobs   jobsCmd   `cmd:"" group:"keep" help:"Look at the service's periodic jobs, and run one."`
	Doctor doctorCmd `cmd:"" group:"keep" help:"Look for what must not be in the database, and say what to do."`

	Bench benchCmd `cmd:"" group:"keep" help:"Measure this program on this machine, as ratios to the database's own limit."`

	Config  configCmd  `cmd:"" group:"keep" help:"Show the settings in effect and where each came from, secrets hidden."`
	Version versionCmd `cmd:"" group:"keep" help:"Show which release this is."`
}

// globals are the flags of every command.
type globals struct {
	ConfigFile configFile `name:"config" placeholder:"FILE" setting:"CONFIG" help:"Read settings from a file: lines NAME=VALUE, or one JSON object."`
	JSON       bool       `name:"json" help:"Print JSON instead of text."`

	sources *settingSources
}
