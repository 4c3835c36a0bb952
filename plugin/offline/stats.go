package offline

import (
	"runtime"
	"time"
)

// Stats are the resources that a round used: from decoded objects to the plan.
type Stats struct {
	// CPUSeconds is user and system time, including garbage collection; 0 if the system does not provide it.
	CPUSeconds  float64 `json:"cpuSeconds"`
	WallSeconds float64 `json:"wallSeconds"`
	// AllocBytes is the total allocation, including freed memory.
	AllocBytes uint64 `json:"allocBytes"`
	// PeakRSSBytes is the peak resident set size of the process, including the input; 0 if the system does not
	// provide it.
	PeakRSSBytes uint64 `json:"peakRSSBytes"`
}

// measure runs work and returns the resources that it used.
func measure(work func()) *Stats {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, wall := cpuSeconds(), time.Now()
	work()
	s := &Stats{WallSeconds: time.Since(wall).Seconds(), CPUSeconds: cpuSeconds() - cpu, PeakRSSBytes: peakBytes()}
	runtime.ReadMemStats(&after)
	s.AllocBytes = after.TotalAlloc - before.TotalAlloc
	return s
}
