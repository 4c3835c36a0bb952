package main

import "syscall"

// childAttributes of the demo's controller: ended by the kernel when the demo
// ends, and in a process group of its own, so that Ctrl-C reaches the demo alone,
// which then stops everything in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
