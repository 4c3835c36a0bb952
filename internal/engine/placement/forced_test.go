package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestForcedNodes checks that other pods fill the small nodes that pods force which exclude each other by hostname, and
// not large nodes, although a unit of cpu costs less there. The workload allows one order of packing only.
func TestForcedNodes(t *testing.T) {
	const count, small, most = 200, 2e8, 1.05
	exclusive := []model.Term{{Key: model.LabelHostname, Anti: true, Selector: model.Selector{AllNamespaces: true,
		Requirements: []label.Requirement{in("app", "apart")}}}}
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := equalPools(1, func(*model.PoolSpec) {})
		w.pools[0].Catalog.Types[2].Offerings[0].Price = 75e7 // of 8 processors; a small node of 2 costs 2e8
		w.pods = nil
		for i := range 5 * count {
			p := model.PodSpec{UID: fmt.Sprint(i), Name: fmt.Sprint("pod-", i), Namespace: "default", Requests: []quantity.Amount{
				{Name: "cpu", Value: 10 * (1 + random.Int64N(40))}, {Name: "memory", Value: (1 + random.Int64N(32)) << 25}}}
			if i < count {
				p.Labels, p.Terms = map[string]string{"app": "apart"}, exclusive
			}
			w.pods = append(w.pods, p)
		}
		snap := w.snapshot(nil)
		p := placement.Schedule(snap, placement.Options{})
		price := int64(0)
		for i := range p.Claims {
			price += p.Claims[i].Price()
		}
		if ratio := float64(price) / (count * small); ratio > most || len(p.Refused) > 0 {
			t.Errorf("seed %d: %d claims cost %.3f times %d small nodes, want %.2f at most; refused: %d groups",
				seed, len(p.Claims), ratio, count, most, len(p.Refused))
		}
	}
}
