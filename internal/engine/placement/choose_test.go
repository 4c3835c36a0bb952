package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestChoosingDomains: the heap of domains and the cached least counts make the same choices as an examination of all
// domains for each pod.
func TestChoosingDomains(t *testing.T) {
	for seed := range uint64(150) {
		snap := manyRacks(seed).snapshot(nil)
		got := explain.Provision(snap, placement.Schedule(snap, placement.Options{}))
		want := explain.Provision(snap, placement.ScheduleScanning(snap, placement.Options{}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: the plan of the heap differs (-scan +heap):\n%s", seed, diff)
		}
	}
}

// manyRacks is a world of nodes with many values of a label, unevenly filled, and of pods with rules by it.
func manyRacks(seed uint64) world {
	dice := rand.New(rand.NewPCG(seed, 77))
	w := racks(0, 0, "", "")
	w.pools[0].Requirements = append(w.pools[0].Requirements, in("example.com/rack", "node-0001", "node-0003", "new"))
	if dice.IntN(2) == 0 {
		w.pools[0].Requirements = w.pools[0].Requirements[:1]
	}
	selector := func(app string) model.Selector {
		return model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{in("app", app)}}
	}
	pod := func(name, app string) model.PodSpec {
		return model.PodSpec{UID: name, Namespace: "default", Name: name, Created: epoch, Labels: map[string]string{"app": app},
			Requests: []quantity.Amount{{Name: "cpu", Value: 100 + 400*int64(dice.IntN(2))}, {Name: "memory", Value: 256 * mi}, {Name: "pods", Value: 1}}}
	}
	for i := range 5 + dice.IntN(20) {
		name := fmt.Sprintf("node-%04d", i)
		amounts := []quantity.Amount{{Name: "cpu", Value: int64(200 + 200*dice.IntN(8))}, {Name: "memory", Value: 4096 * mi}, {Name: "pods", Value: 110}}
		node := model.NodeSpec{Name: name, UID: name, Stage: model.Initialized, Created: epoch, InitializedAt: epoch, Ready: true,
			Labels: map[string]string{model.LabelHostname: name, "example.com/rack": fmt.Sprintf("node-%04d", i-i%(1+dice.IntN(2)))}, Capacity: amounts, Allocatable: amounts}
		if dice.IntN(8) == 0 {
			delete(node.Labels, "example.com/rack")
		}
		w.nodes = append(w.nodes, node)
		for k := range dice.IntN(3) {
			p := pod(fmt.Sprintf("bound-%d-%d", i, k), string(rune('a'+dice.IntN(3))))
			p.State, p.Node = model.Bound, name
			w.pods = append(w.pods, p)
		}
	}
	for i := range 3 {
		app := string(rune('a' + i))
		rule := dice.IntN(4)
		skew, least := 1+dice.IntN(2), dice.IntN(3)*dice.IntN(20)
		key := []string{"example.com/rack", "example.com/rack", model.LabelCapacityType}[dice.IntN(3)]
		for k := range dice.IntN(30) {
			p := pod(fmt.Sprintf("%s-%d", app, k), app)
			switch rule {
			case 0:
				p.Spread = []model.Spread{{Key: key, MaxSkew: skew, MinDomains: least, Selector: selector(app)}}
			case 1:
				p.Terms = []model.Term{{Key: key, Anti: true, Selector: selector(app)}}
			case 2:
				p.Terms = []model.Term{{Key: key, Selector: selector(app)}}
			case 3:
				p.Spread = []model.Spread{{Key: key, MaxSkew: skew, Soft: true, Selector: selector("a")}}
				p.Terms = []model.Term{{Key: "example.com/rack", Anti: true, Weight: 5, Selector: selector("b")}}
			}
			w.pods = append(w.pods, p)
		}
	}
	return w
}
