//go:build !linux

package offline

func cpuSeconds() float64 { return 0 }

func peakBytes() uint64 { return 0 }
