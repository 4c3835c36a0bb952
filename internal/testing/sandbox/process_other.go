//go:build !linux

package sandbox

import "syscall"

// childAttributes sets a process group. Without a parent-death signal, components outlive a supervisor that is killed
// with SIGKILL.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func processStart(int) string { return "unknown" }
