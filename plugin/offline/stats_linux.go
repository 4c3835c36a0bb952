package offline

import "syscall"

// cpuSeconds returns the CPU time of the process so far (getrusage(2)).
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// peakBytes returns the peak resident set size so far; ru_maxrss is in KiB on Linux.
func peakBytes() uint64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return uint64(u.Maxrss) * 1024
}
