package main

import (
	"log/slog"
	"time"
)

// A setting is a flag with the tag `setting:"NAME"`. Its value is the first of these that there is: the flag, the
// environment variable ALLOCATOR_NAME, for one with the tag `secret` also the content of the file that
// ALLOCATOR_NAME_FILE names, the configuration file, the default.
const (
	settingTag = "setting"
	secretTag  = "secret"
	envPrefix  = "ALLOCATOR_"
	fileSuffix = "_FILE"
)

// secret is a text that no log and no message shows.
type secret string

// String hides the text.
func (s secret) String() string {
	if s == "" {
		return ""
	}
	return "(hidden)"
}

// GoString hides the text.
func (s secret) GoString() string { return s.String() }

// LogValue hides the text.
func (s secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// clientSettings are for commands that speak HTTP to a running service.
type clientSettings struct {
	URL    string `name:"url" default:"http://127.0.0.1:8080" placeholder:"URL" setting:"URL" help:"The service."`
	APIKey secret `name:"api-key" placeholder:"KEY" setting:"API_KEY" secret:"" help:"The key to call it with."`
}

// databaseSettings are for commands that work on the database itself.
type databaseSettings struct {
	DatabaseURL secret `name:"database-url" placeholder:"URL" setting:"DATABASE_URL" secret:"" help:"PostgreSQL 15 or newer: postgres://user:password@host:5432/database."`
	MaxConns    int32  `name:"max-conns" default:"8" placeholder:"N" setting:"MAX_CONNS" help:"The most connections one process opens."`
}

// dataSettings say where a service without a database URL keeps its own PostgreSQL.
type dataSettings struct {
	PostgresBin string `name:"postgres-bin" placeholder:"DIR" setting:"POSTGRES_BIN" help:"Directory of the PostgreSQL programs to run; found by itself if left out."`
	DataDir     string `name:"data-dir" placeholder:"DIR" setting:"DATA_DIR" help:"Directory of the PostgreSQL that is run without a database URL."`
}

// serviceSettings are for a running service.
type serviceSettings struct {
	Listen        string        `name:"listen" default:"127.0.0.1:8080" placeholder:"ADDRESS" setting:"LISTEN" help:"Where to serve HTTP; port 0 takes any free one."`
	HoldTokenKeys secret        `name:"hold-token-keys" placeholder:"NAME:HEX,…" setting:"HOLD_TOKEN_KEYS" secret:"" help:"Keys that sign hold tokens, the newest first."`
	LeaseCeiling  time.Duration `name:"lease-ceiling" default:"0s" placeholder:"TIME" setting:"LEASE_CEILING" help:"How long heartbeats can keep an edit lease; 0 is for ever."`
	DrainDelay    time.Duration `name:"drain-delay" default:"0s" placeholder:"TIME" setting:"DRAIN_DELAY" help:"How long to go on serving with /readyz at 503 first, so that a load balancer notices."`
}

// serveSettings are for a service on a database that others look after.
type serveSettings struct {
	Migrate      bool `name:"migrate" setting:"MIGRATE" help:"Bring the database schema up to date first."`
	BehindPooler bool `name:"behind-pooler" setting:"BEHIND_POOLER" help:"The database URL leads to a pooler in transaction mode: poll for jobs instead of listening."`
}

// logSettings are for a running service whose log is collected.
type logSettings struct {
	LogLevel  slog.Level `name:"log-level" default:"info" placeholder:"LEVEL" setting:"LOG_LEVEL" help:"debug, info, warn or error."`
	LogFormat string     `name:"log-format" default:"json" enum:"json,text" placeholder:"FORMAT" setting:"LOG_FORMAT" help:"json or text."`
}
