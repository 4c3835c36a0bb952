package offline

import (
	"os"
	"testing"
)

// BenchmarkMirror measures the reading of objects into the state, and BenchmarkDecide one round of --repeat, of the
// workload in the folder of KARPENTER_WORKLOAD.
func BenchmarkMirror(b *testing.B) {
	in := workload100(b)
	b.ReportAllocs()
	for b.Loop() {
		in.Snapshot()
	}
}

func workload100(b *testing.B) *Manifests {
	folder := os.Getenv("KARPENTER_WORKLOAD")
	if folder == "" {
		b.Skip("KARPENTER_WORKLOAD is not set")
	}
	in, err := (&Source{Paths: []string{folder}, Cluster: &Cluster{}}).Read(b.Context(), Policy{})
	if err != nil {
		b.Fatal(err)
	}
	return in
}
