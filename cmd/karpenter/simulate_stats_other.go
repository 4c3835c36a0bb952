//go:build !linux

package main

func cpuSeconds() float64 { return 0 }

func peakBytes() uint64 { return 0 }
