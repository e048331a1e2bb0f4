//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package embedded

import (
	"context"
	"fmt"
	"runtime"
)

// Server is never made on this operating system.
type Server struct{}

// Start refuses with ErrUnsupported.
func Start(context.Context, Options) (*Server, error) {
	return nil, fmt.Errorf("%w (%s): run a PostgreSQL server yourself and set ALLOCATOR_DATABASE_URL to it", ErrUnsupported, runtime.GOOS)
}

// URL returns an empty string.
func (*Server) URL() string { return "" }

// Version returns an empty string.
func (*Server) Version() string { return "" }

// Done returns nil, which is never ready.
func (*Server) Done() <-chan struct{} { return nil }

// Err returns nil.
func (*Server) Err() error { return nil }

// Stop does nothing.
func (*Server) Stop(context.Context) error { return nil }
