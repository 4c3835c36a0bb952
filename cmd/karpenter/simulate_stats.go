package main

import (
	"runtime"
	"time"
)

// stats is what a round took: from decoded objects to the plan.
type stats struct {
	// CPUSeconds of user and system, garbage collection included; 0 where the system does not tell.
	CPUSeconds  float64 `json:"cpuSeconds"`
	WallSeconds float64 `json:"wallSeconds"`
	// AllocBytes is what was allocated, whether or not it was freed again.
	AllocBytes uint64 `json:"allocBytes"`
	// PeakRSSBytes is the largest the process has been, input included; 0 where the system does not tell.
	PeakRSSBytes uint64 `json:"peakRSSBytes"`
}

// measure runs work and says what it took.
func measure(work func()) *stats {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, wall := cpuSeconds(), time.Now()
	work()
	s := &stats{WallSeconds: time.Since(wall).Seconds(), CPUSeconds: cpuSeconds() - cpu, PeakRSSBytes: peakBytes()}
	runtime.ReadMemStats(&after)
	s.AllocBytes = after.TotalAlloc - before.TotalAlloc
	return s
}
