package sandbox

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// attributes of a child: ended by the kernel when we end, and in a process group
// of its own, so that a SIGINT from the terminal reaches the supervisor alone.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// processStart returns when a process started, in ticks since boot (field 22 of
// proc_pid_stat(5)), which with its id identifies it; "-" if there is none.
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
