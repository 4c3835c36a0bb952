package placement_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// BenchmarkApart plans pods that are groups of one pod each, all of which exclude each other from their hosts. The
// input has n^2 parts (each selector lists all other pods), and the time of the snapshot and of the plan should grow in
// proportion.
func BenchmarkApart(b *testing.B) {
	for _, pods := range []int{250, 500, 1_000, 1_500} {
		b.Run(strconv.Itoa(pods), func(b *testing.B) {
			b.ReportAllocs()
			w := mutuallyApart(pods)
			for b.Loop() {
				b.ReportMetric(float64(placement.Schedule(w.snapshot(nil), placement.Options{}).Work), "questions")
			}
		})
	}
}

// TestApartGrowth checks that the evaluations of a plan of n such pods grow no faster than n^2, and its allocations
// likewise: an absolute time would depend on the machine.
func TestApartGrowth(t *testing.T) {
	cost := func(pods int) (work int, allocated uint64) {
		w := mutuallyApart(pods)
		snap := w.snapshot(nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		work = placement.Schedule(snap, placement.Options{}).Work
		runtime.ReadMemStats(&after)
		return work, after.TotalAlloc - before.TotalAlloc
	}
	small, large := 200, 800
	smallWork, smallAllocated := cost(small)
	largeWork, largeAllocated := cost(large)
	square := (large / small) * (large / small)
	if largeWork > square*smallWork {
		t.Errorf("%d pods take %d evaluations and %d take %d, want at most %d times as many", small, smallWork, large, largeWork, square)
	}
	if largeAllocated > uint64(square)*smallAllocated {
		t.Errorf("%d pods allocate %d bytes and %d allocate %d, want at most %d times as many", small, smallAllocated, large, largeAllocated, square)
	}
}

// mutuallyApart has pods with a label of their own each. Each has a required anti-affinity to all others by hostname,
// and is spread over hosts, zones and, where possible, capacity types.
func mutuallyApart(pods int) world {
	w := world{pools: []model.PoolSpec{{Name: "default", UID: "default", Catalog: wideCatalog(150),
		Requirements: []label.Requirement{in(model.LabelPool, "default")}}}}
	names := make([]string, pods)
	for i := range names {
		names[i] = fmt.Sprintf("p%04d", i)
	}
	for i, name := range names {
		others := append(append(make([]string, 0, pods-1), names[:i]...), names[i+1:]...)
		selector := func(values ...string) model.Selector {
			return model.Selector{Namespaces: []string{"tenant"}, Requirements: []label.Requirement{in("app", values...)}}
		}
		w.pods = append(w.pods, model.PodSpec{UID: name, Namespace: "tenant", Name: name, Created: epoch, Labels: map[string]string{"app": name}, Reschedulable: true,
			Requests: []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "memory", Value: 128 * mi}, {Name: "pods", Value: 1}},
			Terms:    []model.Term{{Key: model.LabelHostname, Anti: true, Selector: selector(others...)}},
			Spread: []model.Spread{{Key: model.LabelHostname, MaxSkew: 1, Selector: selector(name)}, {Key: model.LabelZone, MaxSkew: 1, Selector: selector(name)},
				{Key: model.LabelCapacityType, MaxSkew: 1, Soft: true, Selector: selector(name)}}})
	}
	return w
}
