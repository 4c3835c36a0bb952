package sandbox

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// childAttributes makes the kernel end the child when this process ends. It puts the child into a process group of
// its own, so that only the supervisor receives a SIGINT from the terminal.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// processStart returns when a process started, in ticks since boot (field 22 of proc_pid_stat(5)). Together with the
// process id the value identifies the process. It is "-" if there is no such process.
func processStart(id int) string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return "-"
	}
	_, rest, _ := strings.Cut(string(content), ") ") // the name may contain anything
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return "-"
	}
	return fields[19]
}
