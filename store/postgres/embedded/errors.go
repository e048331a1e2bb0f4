package embedded

import "errors"

// The kinds of failure a caller may want to tell apart, with errors.Is. Each
// error returned by Start is a sentence that also says what to do next.
var (
	// ErrNoBinaries: no PostgreSQL server of a version that can be used is installed.
	ErrNoBinaries = errors.New("no usable PostgreSQL server is installed")
	// ErrLocked: another process runs the server of this data directory.
	ErrLocked = errors.New("the data directory is in use")
	// ErrVersion: the data was written by a major version whose binaries are not installed.
	ErrVersion = errors.New("the data belongs to another major version of PostgreSQL")
	// ErrNotEnterable: the account PostgreSQL runs as cannot enter a directory on the way to the data.
	ErrNotEnterable = errors.New("PostgreSQL cannot reach its data directory")
	// ErrDamaged: the data directory lacks something only its first start can make.
	ErrDamaged = errors.New("the data directory is incomplete")
	// ErrNotStarted: the server exited or did not answer; the text ends with the last lines of its log.
	ErrNotStarted = errors.New("PostgreSQL did not start")
	// ErrDied: the server stopped without having been asked to.
	ErrDied = errors.New("PostgreSQL stopped by itself")
	// ErrUnsupported: this operating system is not supported by the supervisor.
	ErrUnsupported = errors.New("running PostgreSQL is not supported on this operating system")
)
