package placement_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// BenchmarkDomains has 5,000 nodes, each with its own value of a label, and 500 pods with rules by that label. It
// should take about as long as the same rules by hostname.
func BenchmarkDomains(b *testing.B) {
	const rack = "example.com/rack"
	for _, key := range []string{model.LabelHostname, rack} {
		for _, rule := range []string{"spread", "apart", "near"} {
			b.Run(rule+"/"+key, func(b *testing.B) { benchmark(b, racks(5_000, 500, key, rule).snapshot(nil)) })
		}
	}
}

// racks is a world of nodes, each with its own value of rack and hostname, and of pods with one rule by a key.
func racks(nodes, pods int, key, rule string) world {
	w := world{pools: []model.PoolSpec{{Name: "default", UID: "default", Catalog: wideCatalog(50),
		Requirements: []label.Requirement{in(model.LabelPool, "default")}}}}
	amounts := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "memory", Value: 16384 * mi}, {Name: "pods", Value: 1000}}
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		w.nodes = append(w.nodes, model.NodeSpec{Name: name, UID: name, Stage: model.Initialized, Created: epoch, InitializedAt: epoch, Ready: true,
			Labels: map[string]string{model.LabelHostname: name, "example.com/rack": name}, Capacity: amounts, Allocatable: amounts})
	}
	selector := model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{in("app", "a")}}
	for i := range pods {
		p := model.PodSpec{UID: strconv.Itoa(i), Namespace: "default", Name: fmt.Sprintf("pod-%d", i), Created: epoch, Labels: map[string]string{"app": "a"},
			Requests: []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "memory", Value: 256 * mi}, {Name: "pods", Value: 1}}}
		switch rule {
		case "spread":
			p.Spread = []model.Spread{{Key: key, MaxSkew: 1, Selector: selector}}
		case "apart":
			p.Terms = []model.Term{{Key: key, Anti: true, Selector: selector}}
		case "near":
			p.Requests[0].Value = 5
			p.Requests[1].Value = mi
			p.Terms = []model.Term{{Key: key, Selector: selector}}
		}
		w.pods = append(w.pods, p)
	}
	return w
}
