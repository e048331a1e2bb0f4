//go:build !linux

package postgres

import (
	"syscall"
	"time"
)

// boundSilence does nothing where the kernel cannot be asked.
func boundSilence(time.Duration) func(network, address string, conn syscall.RawConn) error {
	return nil
}
