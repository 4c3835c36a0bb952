// Package workloads reads clusters from folders for benchmarks of the engine, which must know neither files nor objects
// of Kubernetes: what `kubectl karpenter simulate -f FOLDER` decides on is what they measure.
//
//	Snapshots(b, now, run)       for each folder in the folder of KARPENTER_WORKLOADS
//	Snapshot(tb, folder, now)    for one folder
//
// `go -C test run ./bench workload NAME FOLDER` writes such folders.
//
// The package is for tests. It must not know what is done with a snapshot: placement, bounds, disruption.
package workloads

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// Snapshots calls run, as a separate benchmark, with the snapshot of each folder in the folder of
// KARPENTER_WORKLOADS. It skips the benchmark if that is not set.
func Snapshots(b *testing.B, now time.Time, run func(*testing.B, *model.Snapshot)) {
	b.Helper()
	root := os.Getenv("KARPENTER_WORKLOADS")
	if root == "" {
		b.Skip("KARPENTER_WORKLOADS is not set")
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "instance-types.json"))
	if err != nil || len(files) == 0 {
		b.Fatalf("no workloads in %s: %v", root, err)
	}
	for _, file := range files {
		folder := filepath.Dir(file)
		b.Run(filepath.Base(folder), func(b *testing.B) { run(b, Snapshot(b, folder, now)) })
	}
}

// Snapshot reads a folder. It fails the test if anything cannot be read.
func Snapshot(tb testing.TB, folder string, now time.Time) *model.Snapshot {
	tb.Helper()
	source := offline.Source{Paths: []string{folder}, Cluster: &offline.Cluster{}, Now: now}
	input, err := source.Read(tb.Context(), offline.Policy{})
	if err != nil {
		tb.Fatal(err)
	}
	if len(input.Problems) > 0 {
		tb.Fatalf("%s: %v", folder, input.Problems)
	}
	return input.Snapshot()
}
