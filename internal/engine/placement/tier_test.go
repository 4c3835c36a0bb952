package placement_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestEqualWeights: where pools have equal weights, plans are cheaper than if the names had decided, and no more pods
// are unschedulable. That holds for all worlds together: the best packing is not always the cheapest one when tried,
// and where limits are tight the order decides which pods are refused.
func TestEqualWeights(t *testing.T) {
	var equal, named, cheaper, dearer int64
	lost, lostByName := 0, 0
	for seed := range uint64(*worlds) {
		w := randomWorld(seed)
		for i := range w.pools {
			w.pools[i].Weight = 0
		}
		e := placement.Schedule(w.snapshot(nil), placement.Options{})
		for i := range w.pools {
			w.pools[i].Weight = int32(1 + i) // pool-3 before pool-2
		}
		n := placement.Schedule(w.snapshot(nil), placement.Options{})
		lost, lostByName = lost+refusedPods(e), lostByName+refusedPods(n)
		if refusedPods(e) != refusedPods(n) {
			continue
		}
		equal, named = equal+cost(e), named+cost(n)
		switch {
		case cost(e) < cost(n):
			cheaper++
		case cost(e) > cost(n):
			dearer++
		}
	}
	t.Logf("%d worlds are cheaper where price decides, %d more expensive; in all %.1f%% cheaper; %d pods are unschedulable, %d where names decide", cheaper, dearer,
		100-100*float64(equal)/float64(named), lost, lostByName)
	if lost > lostByName+lostByName/100 {
		t.Errorf("%d pods are unschedulable where price decides, %d where names do", lost, lostByName)
	}
	if 6*cheaper < int64(*worlds) {
		t.Errorf("%d of %d worlds are cheaper, want a sixth", cheaper, *worlds)
	}
	if 4*dearer > cheaper {
		t.Errorf("%d worlds are more expensive, want at most a quarter of %d, which are cheaper", dearer, cheaper)
	}
	if equal >= named {
		t.Errorf("all together cost %d nano-USD per hour, want less than %d", equal, named)
	}
}

func refusedPods(p *plan.Provision) int {
	n := 0
	for _, r := range p.Refused {
		n += len(r.Pods)
	}
	return n
}

// cost returns the cost of a plan, nano-USD per hour.
func cost(p *plan.Provision) int64 {
	var sum int64
	for i := range p.Claims {
		sum += p.Claims[i].Price() + placement.ProductionNodePrice
	}
	return sum
}
