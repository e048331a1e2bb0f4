package postgres

import (
	"syscall"
	"time"
)

// tcpUserTimeout is Linux's socket option of that name, which package syscall does not know.
const tcpUserTimeout = 0x12

// boundSilence makes the kernel give a connection up after so long without a word from the other side although something
// was sent. Without it that takes a quarter of an hour, and keep-alives do not count while something is under way.
func boundSilence(limit time.Duration) func(network, address string, conn syscall.RawConn) error {
	return func(_, _ string, conn syscall.RawConn) (err error) {
		outer := conn.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(limit.Milliseconds()))
		})
		if outer != nil {
			return outer
		}
		return err
	}
}
