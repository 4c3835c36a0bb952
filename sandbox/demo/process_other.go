//go:build !linux

package demo

import "syscall"

// childAttributes sets a process group for the demo's controller. Without a parent-death signal, it outlives a demo
// that is killed with SIGKILL.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
