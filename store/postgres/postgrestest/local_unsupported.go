//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package postgrestest

import (
	"context"

	"allocator/store/postgres/embedded"
)

// startLocal has no supervisor to run a server with.
func startLocal(context.Context) (string, error) { return "", embedded.ErrUnsupported }
