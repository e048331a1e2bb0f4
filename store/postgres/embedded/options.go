package embedded

import (
	"cmp"
	"log/slog"
	"os"
	"time"
)

// BinEnv names the environment variable that overrides the search for
// PostgreSQL's binaries with one directory.
const BinEnv = "ALLOCATOR_POSTGRES_BIN"

// Options say where and how the server runs. Only DataDir is required.
type Options struct {
	// DataDir is the directory everything is kept in. It is created when it is
	// missing. When started by root, every parent must be enterable by the
	// account the server runs as.
	DataDir string

	// BinDir is the directory of the postgres and initdb binaries. Empty means
	// the value of BinEnv, and without that a search of the machine.
	BinDir string

	// MaxConnections is PostgreSQL's max_connections; 0 means 100.
	MaxConnections int

	// StartTimeout bounds the wait for the first answer, crash recovery
	// included; 0 means five minutes. The context bounds it as well.
	StartTimeout time.Duration

	// FsyncOffForTests lets the server forget to reach the disk. A power cut
	// then destroys the database, so it is for tests alone.
	FsyncOffForTests bool

	// Log receives what the supervisor does; nil means nothing. The server's own
	// log goes to DataDir/postgres.log.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MaxConnections == 0 {
		o.MaxConnections = 100
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 5 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) binDir() string { return cmp.Or(o.BinDir, os.Getenv(BinEnv)) }
