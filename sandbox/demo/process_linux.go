package demo

import "syscall"

// childAttributes makes the kernel end the demo's controller when the demo ends. The controller gets a process group
// of its own, so that only the demo receives Ctrl-C, which then stops everything in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
