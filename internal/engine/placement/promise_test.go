package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestPromiseThatCannotBeKept: a pod that no longer fits where it was promised a place still has the claim that was
// bought for it since, and nobody else gets that place. (After a crash between buying the claim and taking the
// nomination back, one node more was bought.)
func TestPromiseThatCannotBeKept(t *testing.T) {
	cpu := func(n int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: n}, {Name: "memory", Value: n}, {Name: "pods", Value: 1}}
	}
	room := []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "memory", Value: 1000}, {Name: "pods", Value: 10}}
	pending := func(uid string, amount int64) model.PodSpec {
		return model.PodSpec{UID: uid, Namespace: "default", Name: uid, Requests: cpu(amount), Reschedulable: true}
	}
	node := func(name string, promised ...string) model.NodeSpec {
		return model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "pool", Stage: model.Registered, Ready: true,
			Labels: map[string]string{model.LabelPool: "pool"}, Capacity: room, Allocatable: room, Promised: promised}
	}
	tests := map[string]struct {
		nominated string
		promised  string
	}{
		"nominated to a full node":        {nominated: "full"},
		"promised a full node by a claim": {promised: "pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := model.NewBuilder()
			b.UpsertPool(model.PoolSpec{Name: "pool", UID: "pool", Requirements: []label.Requirement{{Key: model.LabelPool, Operator: label.In, Values: []string{"pool"}}}})
			bound := pending("bound", 1000)
			bound.State, bound.Node = model.Bound, "full"
			b.UpsertPod(bound)
			b.UpsertNode(node("full", test.promised))
			b.UpsertNode(node("bought", "pod"))
			pod := pending("pod", 500)
			pod.Nominated = test.nominated
			b.UpsertPod(pod)
			b.UpsertPod(pending("larger", 600))

			p := placement.Schedule(b.Snapshot(time.Unix(0, 0)), placement.Options{})

			got := map[string][]string{}
			for _, placed := range p.Placed {
				for _, q := range placed.Pods {
					got[placed.Node] = append(got[placed.Node], q.Name)
				}
			}
			if diff := cmp.Diff(map[string][]string{"bought": {"pod"}}, got); diff != "" {
				t.Errorf("placed (-want +got):\n%s", diff)
			}
		})
	}
}
