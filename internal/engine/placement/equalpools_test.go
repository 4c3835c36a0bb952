package placement_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// equalPools are pools of equal weight that differ in their names only, unless edited. Pool d is tried first.
func equalPools(count int, edit func(*model.PoolSpec)) world {
	amounts := func(cpu int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: 1000 * cpu}, {Name: "memory", Value: cpu << 32}, {Name: "pods", Value: 110}}
	}
	catalog := &model.Catalog{WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}
	for _, size := range []int64{2, 4, 8} {
		catalog.Types = append(catalog.Types, model.InstanceType{
			Name: fmt.Sprint("cpu-", size), Capacity: amounts(size), Allocatable: amounts(size),
			Offerings: []model.Offering{{Zone: "a", CapacityType: "on-demand", Price: 1e8 * size, Available: true}}})
	}
	var w world
	for _, name := range []string{"d", "c", "b", "a"}[:count] {
		p := model.PoolSpec{Name: name, UID: name, Catalog: catalog,
			Requirements: []label.Requirement{{Key: model.LabelPool, Operator: label.In, Values: []string{name}}}}
		edit(&p)
		w.pools = append(w.pools, p)
	}
	for i := range 12 {
		name := fmt.Sprint("pod-", i)
		w.pods = append(w.pods, model.PodSpec{UID: name, Name: name, Namespace: "default",
			Requests: []quantity.Amount{{Name: "cpu", Value: 500 + int64(i%4)*300}, {Name: "memory", Value: 1 << 30}}})
	}
	return w
}

// TestEqualPools checks that pools that are equal but for their names cost no more work than one pool.
func TestEqualPools(t *testing.T) {
	plain := func(*model.PoolSpec) {}
	one, four := equalPools(1, plain).snapshot(nil), equalPools(4, plain).snapshot(nil)
	p, q := placement.Schedule(one, placement.Options{}), placement.Schedule(four, placement.Options{})
	if diff := cmp.Diff(explain.AnswerOf(one, p), explain.AnswerOf(four, q)); diff != "" {
		t.Errorf("three further pools change the plan (-one pool +four):\n%s", diff)
	}
	if len(p.Claims) < 2 || p.Work != q.Work {
		t.Errorf("%d claims of one pool take %d units of work, with four pools %d", len(p.Claims), p.Work, q.Work)
	}
}

// TestUnequalPools checks that a pool is used beside one of the same types that has a limit, or that some pods do not
// accept.
func TestUnequalPools(t *testing.T) {
	for name, c := range map[string]struct {
		pool func(*model.PoolSpec)
		pod  func(*model.PodSpec)
	}{
		"limit of cpu":   {pool: func(p *model.PoolSpec) { p.Limits = []quantity.Amount{{Name: "cpu", Value: 4000}} }},
		"limit of nodes": {pool: func(p *model.PoolSpec) { p.Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: 1}} }},
		"taint": {pool: func(p *model.PoolSpec) {
			p.Taints = []model.Taint{{Key: "only", Value: "few", Effect: model.NoSchedule}}
		}},
		"pods that exclude the pool": {pod: func(p *model.PodSpec) {
			p.Alternatives = [][]label.Requirement{{{Key: model.LabelPool, Operator: label.NotIn, Values: []string{"d"}}}}
		}},
		"pods that spread over pools": {pod: func(p *model.PodSpec) {
			p.Labels = map[string]string{"app": "spread"}
			those := model.Selector{AllNamespaces: true, Requirements: []label.Requirement{in("app", "spread")}}
			p.Spread = []model.Spread{{Key: model.LabelPool, MaxSkew: 1, Selector: those}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := equalPools(2, func(p *model.PoolSpec) {
				if p.Name == "d" && c.pool != nil {
					c.pool(p)
				}
			})
			for i := range w.pods[:6] {
				w.pods[i].Tolerations = []model.Toleration{{Key: "only", Exists: true}}
			}
			for i := range w.pods[:2] {
				if c.pod != nil {
					c.pod(&w.pods[i])
				}
			}
			p := placement.Schedule(w.snapshot(nil), placement.Options{})
			pods := map[string]int{}
			for _, claim := range p.Claims {
				pods[claim.Pool] += len(claim.Pods)
			}
			if pods["c"] == 0 || pods["c"]+pods["d"] != len(w.pods) {
				t.Errorf("pods by pool: %v, want a place for %d, some of them in pool c", pods, len(w.pods))
			}
		})
	}
}
