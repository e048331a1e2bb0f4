//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package embedded

import "syscall"

// dieWithParent does nothing: the next Start shuts an orphan down instead.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
