package concurrency_test

import "syscall"

// dieWithUs makes a process end when the thread that started it does.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
