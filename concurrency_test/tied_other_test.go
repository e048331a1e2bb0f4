//go:build unix && !linux

package concurrency_test

import "syscall"

// dieWithUs can do nothing here; the process ends with its test.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
