package embedded

import "syscall"

// dieWithParent asks the kernel to send the signal to the child when the
// operating system thread that started it ends; see startChild for the thread.
func dieWithParent(attr *syscall.SysProcAttr, signal syscall.Signal) { attr.Pdeathsig = signal }
