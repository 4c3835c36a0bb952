package placement_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// of returns the world as a controller sees it that has every second pool, from the first or from the second.
func (w world) of(controller int) world {
	own := w
	own.pools = nil
	for i, p := range w.pools {
		if i%2 != controller && p.Blocked == nil {
			p.Elsewhere, p.Blocked = true, &model.Rejection{Silent: true, Reason: "is another controller's"}
		}
		own.pools = append(own.pools, p)
	}
	return own
}

// TestTwoControllers checks, for random pools that two controllers share, that no pod has a node launched by both, that each
// launches from its own pools, and that each pod has an answer of one of them.
func TestTwoControllers(t *testing.T) {
	launched := [2]int{}
	for seed := range uint64(200) {
		w := diceOf(seed, rich).world()
		answered, bought := map[*model.PodSpec]bool{}, map[string]int{}
		byUID := map[string]*model.PodSpec{}
		for i := range w.pods {
			byUID[w.pods[i].UID] = &w.pods[i]
		}
		for controller := range 2 {
			snap := w.of(controller).snapshot(nil)
			p := placement.Schedule(snap, placement.Options{})
			for _, c := range p.Claims {
				if snap.Pool(c.Pool).Elsewhere {
					t.Errorf("seed %d: controller %d launches from pool %s of the other", seed, controller, c.Pool)
				}
				for _, pod := range c.Pods {
					bought[pod.UID]++
					launched[controller]++
				}
			}
			for _, pod := range podsOf(p) {
				answered[byUID[pod.UID]] = true
			}
		}
		for uid, n := range bought {
			if n > 1 {
				t.Errorf("seed %d: %d nodes are launched for pod %s", seed, n, uid)
			}
		}
		alone := placement.Schedule(w.snapshot(nil), placement.Options{})
		for _, pod := range podsOf(alone) {
			if !answered[byUID[pod.UID]] {
				t.Errorf("seed %d: no controller has an answer for pod %s", seed, pod.Name)
			}
		}
	}
	if launched[0] < 200 || launched[1] < 200 {
		t.Errorf("%v pods have nodes launched by the controllers, want many by each", launched)
	}
}

// podsOf returns all pods of a plan: those that are placed and those that are refused.
func podsOf(p *plan.Provision) []*model.Pod {
	var all []*model.Pod
	for _, c := range p.Claims {
		all = append(all, c.Pods...)
	}
	for _, s := range p.Placed {
		all = append(all, s.Pods...)
	}
	for _, r := range p.Refused {
		all = append(all, r.Pods...)
	}
	return all
}
